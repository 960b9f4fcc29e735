//! Experiments as files: what they say, and the reports of their runs.
