
# The first task that comes here submits the merge, which waits until all tasks have ended well.
pending=$stores/merge-$SLURM_ARRAY_JOB_ID
if mkdir -- "$pending" 2>/dev/null; then
    merge=$(printf '%q ' "$outpace" store merge --stores "$stores/*.db" --db "$stores.db")
    report=$(printf '%q ' "$outpace" report --db "$stores.db" -o "$stores.html")
    clean=$(printf '%q ' rmdir -- "$pending")
    sbatch --dependency="afterok:$SLURM_ARRAY_JOB_ID" --kill-on-invalid-dep=yes --time=60 "${sbatch_options[@]}" \
        --chdir="$PWD" --output="$stores/merge.log" --wrap="$merge && $report && $clean" || {
        echo "The merge cannot be submitted from here. Once all tasks have ended: $merge && $report"
        rmdir -- "$pending"
    }
fi

# Some time before its limit a task gets USR1: the run ends its prompt, stores it, and exits with 75. Then the task is
# queued again, and continues where it was. After preemption, and where a node fails, Slurm itself queues it again.
"$outpace" run "$config" "${options[@]}" --shard "$SLURM_ARRAY_TASK_ID/$tasks" --db "$stores/$SLURM_ARRAY_TASK_ID.db" &
run=$!
trap 'kill -USR1 $run' USR1
until wait $run; ! kill -0 $run 2>/dev/null; do :; done # a signal ends 'wait' early
wait $run
code=$?
restarts=${SLURM_RESTART_COUNT:-0}
if [ $code = 75 ] || { [ $code = 137 ] && [ "$restarts" -lt 3 ]; }; then # 137: killed, perhaps for lack of memory
    exec scontrol requeue "$SLURM_JOB_ID"
fi
[ $code != 3 ] || exit 0 # some points cannot be run: the report names them
exit $code
