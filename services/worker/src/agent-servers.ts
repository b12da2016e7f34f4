import { join } from 'node:path'
import type { AgentServers } from '@tutti/activities'
import { agentServerMounts, buildAgentServer, startAgentServer } from '@tutti/agent-server'

/** Agent servers from the bundle that is made, once for each state of the sources, in `cacheDir`. */
export async function createAgentServers(options: {
  readonly cacheDir: string
  readonly stopGraceMs: number
}): Promise<AgentServers> {
  const serverPath = await buildAgentServer(join(options.cacheDir, 'agent-server'))
  return {
    async prepare({ mirrorPath }) {
      return {
        readOnly: agentServerMounts({ serverPath, mirrorObjects: join(mirrorPath, 'objects') }),
        start: (sandbox, signal) =>
          startAgentServer({ sandbox, serverPath, stopGraceMs: options.stopGraceMs }, signal),
        discard: async () => undefined,
      }
    },
  }
}
