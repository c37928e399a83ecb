SELECT version AS outpace, compiler, flags, libraries, host, system, kernel, cpu, isa, governor, nullif(cores, 0) AS cores, nullif(threads, 0) AS threads,
       (SELECT weights FROM run_weights WHERE run_id = ?1) AS weights,
       iif(virtual_machine, 'yes', 'no') AS "virtual machine", nullif(l1d, 0) AS "L1 bytes", nullif(l2, 0) AS "L2 bytes", nullif(l3, 0) AS "L3 bytes",
       nullif(memory, 0) AS "memory bytes", bandwidth AS "bandwidth, bytes/s", peak AS "peak, operations/s",
       gpu, driver, cuda AS "CUDA", cublas AS "cuBLAS", gpu_memory AS "GPU memory bytes",
       gpu_bandwidth AS "GPU bandwidth, bytes/s", gpu_peak AS "GPU peak, operations/s"
FROM environment WHERE id IN (SELECT environment_id FROM attempt WHERE run_id = ?1)
ORDER BY id;
