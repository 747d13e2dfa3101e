//! Property tests: nothing panics on input, whatever it is.
