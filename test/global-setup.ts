import { describeTemporal, findTemporalServer, findTemporalTestServer } from '@tutti/temporal-binary'
import { bundleCli } from '@tutti/testkit'
import type { TestProject } from 'vitest/node'
import { tryContainerEngine } from '../scripts/setup/ensure-container-engine.mjs'
import { trySandbox } from '../scripts/setup/ensure-sandbox.mjs'

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the Temporal CLI for servers that a test starts; null when it cannot be had, with the reason beside it. */
    temporalServer: string | null
    /** Path of the time-skipping test server, likewise. */
    temporalTestServer: string | null
    /** Why one of them is null: the reason to skip with. */
    temporalMissing: string
    /** Why no bubblewrap sandbox can be started here: the reason to skip with; empty where one can. */
    sandboxMissing: string
    /** Why no container engine can be started here: the reason to skip with; empty where one can. */
    engineMissing: string
  }
}

/**
 * Finds the Temporal programs, tries a sandbox and bundles the command line, once for all test files. A cluster of the user's is never used
 * for tests.
 */
export default async function globalSetup(project: TestProject): Promise<void> {
  const options = {
    env: { ...process.env, TEMPORAL_ADDRESS: undefined },
    log: (line: string) => process.stderr.write(`${line}\n`),
  }
  const server = await findTemporalServer(options)
  const testServer = await findTemporalTestServer(options)
  project.provide('temporalServer', server.kind === 'binary' ? server.path : null)
  project.provide('temporalTestServer', testServer.kind === 'binary' ? testServer.path : null)
  const missing = [server, testServer].filter((found) => found.kind === 'missing').map(describeTemporal)
  project.provide('temporalMissing', missing.join('\n'))
  const sandbox = trySandbox()
  project.provide('sandboxMissing', sandbox.ok ? '' : sandbox.why)
  const engine = tryContainerEngine()
  project.provide('engineMissing', engine.ok ? '' : engine.why)
  process.env['TUTTI_TEST_CLI'] = await bundleCli()
}
