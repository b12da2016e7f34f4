import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { create } from '@bufbuild/protobuf'
import { durationFromMs } from '@bufbuild/protobuf/wkt'
import { EnsembleSpecSchema, Isolation, PullRequestMode, type EnsembleSpec } from '@tutti/proto'

const agentFile = fileURLToPath(new URL('agent.mjs', import.meta.url))

/** The demo's ensemble: one agent fixes part, one fixes all, one breaks something; the tests decide. */
export function demoSpec(isolated: boolean): EnsembleSpec {
  const nodeFolder = dirname(process.execPath)
  return create(EnsembleSpecSchema, {
    prompt: 'The tests fail. Make them pass.',
    title: 'Make the tests pass',
    count: 3,
    agents: ['part', 'all', 'break'].map((role) => ({ spec: `command:node "${agentFile}" ${role}` })),
    strategy: 'merge',
    checkCommand: 'node --test',
    childTimeout: durationFromMs(60_000),
    pullRequest: PullRequestMode.READY,
    sandbox: {
      isolation: isolated ? Isolation.BUBBLEWRAP : Isolation.NONE,
      mounts: isolated ? [dirname(agentFile), nodeFolder] : [],
      // The pinned Node first: an older one may be on the system's PATH.
      envValues: { PATH: `${nodeFolder}:/usr/local/bin:/usr/bin:/bin` },
    },
  })
}
