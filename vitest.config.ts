import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { createTotalReporter } from './test/total-reporter.ts'

// Threads and programs that tests start compile their sources once, not each time; a store's thread takes half of the processor time.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(
  new URL('node_modules/.cache/tutti/compiled', import.meta.url),
)

export default defineConfig({
  test: {
    include: ['{packages,services}/*/{src,test}/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    reporters: ['default', createTotalReporter()],
    // Processes, not threads: tests send signals, change environment variables and load native code.
    pool: 'forks',
    // One more than the cores that CI has: a test of real processes waits for a third of its time.
    maxWorkers: 3,
    // Real servers and sandboxes on two shared cores; a test that needs longer says so itself.
    // On a machine that others share, a test of real processes may meet a pause that is no fault of the code: tried again, and named.
    retry: process.env['CI'] ? 2 : 0,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Room for tests to end what they started before their process is taken away.
    teardownTimeout: 20_000,
  },
})
