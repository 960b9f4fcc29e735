//! The subnet manager as a state machine: discover, assign, route, program, activate, sweep
