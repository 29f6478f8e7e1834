#![no_main]

use stagepost_testutil::fuzz;

libfuzzer_sys::fuzz_target!(init: fuzz::write_examples("flow_file"), |bytes: &[u8]| fuzz::flow_file(bytes));
