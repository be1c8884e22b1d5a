"""The rules, by COMPONENT/CAUSE: each turns the evidence of a copy into claims of its limits."""
