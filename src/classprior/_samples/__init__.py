"""Numbers to sums: two samples over any source, dealt to bins."""
