import { describeTemporal, findTemporalServer, findTemporalTestServer } from '@tutti/temporal-binary'
import { bundleCli } from '@tutti/testkit'
import type { TestProject } from 'vitest/node'
import { tryContainerEngine } from '../scripts/setup/ensure-container-engine.mjs'
import { trySandbox } from '../scripts/setup/ensure-sandbox.mjs'
import { findS3Servers } from '../scripts/setup/s3-servers.mjs'

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the Temporal CLI for servers that a test starts; null when it cannot be had, with the reason beside it. */
    temporalServer: string | null
    /** Path of the time-skipping test server, likewise. */
    temporalTestServer: string | null
    /** Why one of them is null: the reason to skip with. */
    temporalMissing: string
    /** Paths of the S3 servers that a test may start; each null when it is not installed, with the reason beside it. */
    s3Servers: Record<'ministack' | 'versitygw', string | null>
    /** Why one of them is null: the reason to skip with. */
    s3Missing: string
    /** Why no bubblewrap sandbox can be started here: the reason to skip with; empty where one can. */
    sandboxMissing: string
    /** Why no container engine can be started here: the reason to skip with; empty where one can. */
    engineMissing: string
  }
}

/**
 * Finds the Temporal programs and the S3 servers, tries a sandbox and bundles the command line, once for all test files. A cluster of the user's is never used
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
  const s3Servers = findS3Servers()
  project.provide('s3Servers', s3Servers.paths)
  project.provide('s3Missing', s3Servers.missing)
  const sandbox = trySandbox()
  project.provide('sandboxMissing', sandbox.ok ? '' : sandbox.why)
  const engine = tryContainerEngine()
  project.provide('engineMissing', engine.ok ? '' : engine.why)
  process.env['TUTTI_TEST_CLI'] = await bundleCli()
}
