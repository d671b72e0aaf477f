//! Registers and a copy of the stack in, named frames out.
