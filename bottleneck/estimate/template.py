"""An observations file to fill in, as `explain --template` prints it."""

TEMPLATE = """\
# Figures for `bottleneck explain FILE`. Remove what you do not know.
schema = "copy-bottleneck/observations/1"
title = "Copies from the NAS are slow"
date = "2026-11-20"                # when the figures were taken
# source = "..."   notes = ["..."]

[client]                           # and [server]: all of it optional
name = "desk"
system = "Windows 11"
link = "1 Gbit/s"
duplex = "full"
mtu = 1500
memory = "16GiB"
# tcp_rmem = "4096 131072 6291456"   (net.ipv4.tcp_rmem, tcp_wmem)
# congestion_control = "cubic"   cores = 4   wifi = true   usb = "480 Mbit/s" (of the network card)

[path]
rtt = "0.4 ms"
# loss = 0.001                     (share of the packets)

[[tcp]]                            # TCP by itself: iperf3, ttcp ...
sender = "server"
rate = "940 Mbit/s"
streams = 4
tool = "iperf3"
# window = "64KiB"   buffer = "128KiB"   client = "desk" (if several were tested)

[[disk]]                           # a disk by itself, sequential
side = "server"
verb = "read"                      # or write
rate = "160 MB/s"                  # or, from the outer tracks (0) to the inner (1):
# zones = [{at = 0.0, rate = "200 MB/s"}, {at = 1.0, rate = "90 MB/s"}]

[[copy]]                           # pull: to the client; push: to the server
copy = "pull.uncached"             # or cached: the source was in the sender's memory;
rate = "11 MB/s"                   # server.push.cached ...: started by the server
dialect = "3.1.1"
size = "10GB"
# client_cpu = "40%"  server_cpu = "98%" (busiest core)  security = "signed"  synced = true
# request = "64KiB"  depth = 1  streams = 1  from_place = 1.0  to_place = 0.0  tool = "robocopy"

# [[latency]]                      requests and responses
# connection = "warm"              or cold: a new connection for each
# table = [{message = "1kB", round_trips = 1, time = "0.5 ms"}]

# [[start]]                        which end should start the copy, if only that is known
# sender = "server"   better = "receiver"   words = "twice as fast"
"""
