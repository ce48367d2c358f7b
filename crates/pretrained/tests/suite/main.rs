//! Against files that other libraries wrote (`tests/fixtures/generate.py`), and against damaged ones.

mod blocks;
mod config;
mod damaged_folder;
mod damaged_gguf;
mod export;
mod models;
mod real;
mod sentence_piece;
mod support;
mod tokens;
