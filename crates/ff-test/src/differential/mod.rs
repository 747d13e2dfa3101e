//! Random operations on the oracle and on a store, compared.
