"""The rules, by COMPONENT/CAUSE: each turns evidence into ceilings of a copy."""
