import type { AgentServers } from '@tutti/activities'
import { agentServerMounts, openEgress, startAgentServer, type StartOptions } from '@tutti/agent-server'
import { traceAgentServer } from './trace-agent-server.ts'

/** Agent servers from their bundle. A policy with allowed hosts gets an egress proxy of its own, which lives as long as the server. */
export function createAgentServers(options: {
  /** Of `buildAgentServer`. */
  readonly serverPath: string
  readonly stopGraceMs: number
  readonly ignored: NonNullable<StartOptions['ignored']>
  /** A sandbox was refused a connection. */
  readonly onDenied: () => void
  readonly now: () => number
}): AgentServers {
  const { serverPath } = options
  return {
    async prepare({ sourceObjects, policy, onDenied }) {
      const egress =
        policy.allowHosts.length > 0 && !policy.allowNetwork
          ? await openEgress({
              allowHosts: policy.allowHosts,
              onDenied({ host, port, reason }) {
                options.onDenied()
                onDenied(`${host}:${port} (${reason})`)
              },
            })
          : undefined
      const discard = async () => egress?.close()
      return {
        readOnly: agentServerMounts({
          serverPath,
          sourceObjects,
          ...(egress && { egressFolder: egress.folder }),
        }),
        async start(sandbox, signal) {
          const { stopGraceMs, ignored } = options
          const started = await startAgentServer(
            { sandbox, serverPath, stopGraceMs, ignored, egress: egress !== undefined },
            signal,
          )
          const server = traceAgentServer(started, options.now)
          return {
            ...server,
            async close() {
              await server.close()
              await discard()
            },
          }
        },
        discard,
      }
    },
  }
}
