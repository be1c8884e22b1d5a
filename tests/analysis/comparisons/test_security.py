"""What signing and encryption take of the rate, and whose CPU bears it."""

ABOUT = ("security",)

FULL = {"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97}


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def costing(seconds_per_gigabyte, rate):
    """A window of 4 s at a rate in MB/s, of which each GB cost so much."""
    return {"copy_cpu_seconds": seconds_per_gigabyte * rate * 4 / 1000}


def test_the_sentence_tells_the_cost_and_the_core_that_bears_it(bare, says):
    bare.tax("pull", "plain", about(117), server=costing(0.4, 117))
    bare.tax("pull", "signed", about(115), server=costing(0.45, 115))
    bare.tax("pull", "encrypted", about(84), server={**costing(1.9, 84), **FULL})
    says(bare)


def test_this_tools_own_full_core_is_called_that(empty_world, says):
    world = empty_world(agent=False)
    world.tax("push", "plain", about(800))
    world.tax("push", "encrypted", about(300), client={**FULL, "copy_cpu_seconds": 3.9})
    says(world)


def test_each_direction_is_told_apart(bare, says):
    for verb in ("push", "pull"):
        bare.tax(verb, "plain", about(100))
        bare.tax(verb, "signed", about(50))
    says(bare)


def test_where_plain_is_not_allowed_signed_is_the_base(bare, says):
    bare.tax("pull", "signed", about(100))
    bare.tax("pull", "encrypted", about(70))
    says(bare)


def test_what_ran_faster_costs_nothing(bare, says):
    bare.tax("pull", "plain", about(50))
    bare.tax("pull", "signed", about(70))
    says(bare)


def test_a_tick_of_cpu_time_is_no_cost(bare, says):
    """A copy of 1 MiB that took no tick of 10 ms, and one that took one."""
    bare.tax("pull", "plain", 0.25, server={"copy_cpu_seconds": 0.0})
    bare.tax("pull", "signed", 0.25, server={"copy_cpu_seconds": 0.01})
    says(bare)


def test_single_runs_have_to_differ_by_a_quarter(bare, says):
    bare.tax("pull", "plain", 100)
    bare.tax("pull", "signed", 85)
    says(bare)


def test_one_kind_alone_altered_bytes_and_strange_words_compare_nothing(bare, says):
    bare.tax("pull", "plain", 100)
    bare.tax("pull", "encrypted", 50, hash_ok=False)
    bare.tax("pull", "obfuscated", 50)
    bare.tax("sideways", "signed", 50)
    says(bare)
