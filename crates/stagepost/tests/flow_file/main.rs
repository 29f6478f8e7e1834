//! Flow files: what they say, what is wrong with them and where, and how they look as a graph.

mod conditions;
mod faults;
mod graphs;
mod reading;
