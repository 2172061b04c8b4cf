//! Workloads as data; key distributions; tables and their deterministic rows.
