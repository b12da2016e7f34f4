/** The queue of the baseline's worker. */
export const bareTaskQueue = 'bench-bare'
