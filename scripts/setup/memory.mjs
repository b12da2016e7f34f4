/**
 * How our programs keep memory. Left alone, V8 and glibc take what a server with a machine of its own may take (three young spaces of up to
 * 32 MB, an arena for each thread); ours shares its machine with the agents. Figures: docs/benchmarks.md.
 */
export const memoryArguments = ['--max-semi-space-size=8']

/** @type {Readonly<Record<string, string>>} */
export const memoryEnvironment = { MALLOC_ARENA_MAX: '2' }
