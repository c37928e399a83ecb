// Prompts from the formats that people have: one loader a format.
//
// Nothing lives here yet. What will: MT-Bench and Spec-Bench JSONL, plain JSONL and text, HumanEval, MBPP,
// GSM8K and others; small sets of our own. A malformed row is an error with file, line and field. May include
// engine/base only.
#pragma once
