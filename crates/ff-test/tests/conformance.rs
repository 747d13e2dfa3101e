//! The conformance suite on every backend.

mod oracle {
    ff_test::conformance!(ff_test::stages::oracle);
}

mod sqlite_file {
    ff_test::conformance!(ff_test::stages::sqlite_file);
}

mod sqlite_memory {
    ff_test::conformance!(ff_test::stages::sqlite_memory);
}

mod valkey_standalone {
    ff_test::conformance!(ff_test::stages::valkey_standalone);
}

mod valkey_cluster {
    ff_test::conformance!(ff_test::stages::valkey_cluster);
}
