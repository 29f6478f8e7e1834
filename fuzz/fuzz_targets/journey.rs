#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stagepost_testutil::fuzz::journey(bytes));
