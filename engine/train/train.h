// Learning: backward passes and AdamW, for small reference models, Kangaroo adapters and Medusa heads.
//
// Nothing lives here yet. What will: x_forward beside x_backward for every operation of a layer, the
// optimiser, checkpoints from which a killed run resumes. May use engine/cpu, model, core and base; only the
// harness uses it.
#pragma once
