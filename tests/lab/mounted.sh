# A job for a virtual machine whose kernel has cifs, netem and dm-crypt: a share that is mounted, the
# copies through it, and one run that is ended by SIGTERM. $MOUNT: options of its own; $NETEM: of
# both hosts' cards; $CRYPT: the share's disk lies below dm-crypt. The last lines are the results.
source "$VM_TOOLS/samba.sh"
chmod 755 / /root
mkdir -p /srv/disk /mnt/share /mnt/own
disk=/dev/nvme0n1
if [ -n "$CRYPT" ]; then
    key=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
    dmsetup create below --table "0 $(blockdev --getsz $disk) crypt aes-xts-plain64 $key 0 $disk 0"
    disk=/dev/mapper/below
fi
mkfs.ext4 -q -F $disk && mount $disk /srv/disk && start_samba /srv/disk || exit 1
mkfs.ext4 -q -F /dev/sda && mount /dev/sda /mnt/own || exit 1
login=username=labuser,password=Lab-pass-1,vers=3.1.1
at client mount -t cifs //10.91.0.2/share /mnt/share -o "$login$MOUNT" || exit 1
for side in client server; do
    [ -z "$NETEM" ] || at $side tc qdisc add dev eth0 root netem $NETEM limit 10000
done
cd "$ROOT" || exit 1
export HOME=/root XDG_STATE_HOME=/root/state
run=("$PYTHON" -m bottleneck diagnose /mnt/share --folder /mnt/own --agent "exec:$ENTER" --auth-file "$AUTH" --yes)
at client "${run[@]}" --budget 240 --json /root/found.json
echo "exit $?"
nsenter --net=/run/netns/client "${run[@]}" --budget 240 >/root/ended 2>&1 &
ended=$!
for _ in $(seq 100); do grep -q 'push.uncached native' /root/ended && break; ls /mnt/share | grep -q bottleneck && break; sleep 1; done
sleep 8
kill -TERM $ended; wait $ended
echo "SIGTERM: exit $?, left: $(ls -A /mnt/share /mnt/own /srv/disk/share | grep bottleneck) $(pgrep -f 'bottleneck (diagnose|agent)')"
tail -n 3 /root/ended
"$PYTHON" - <<'P'
import json
told = json.load(open("/root/found.json"))["diagnosis"]["copies"]
keys = ("copy", "dialect", "bytes_per_second", "verdict", "advice", "evidence")
print("COPIES", json.dumps([{key: each[key] for key in keys} for each in told]))
P
