"""What an operator is, and what authors declare about an implementation of one."""
