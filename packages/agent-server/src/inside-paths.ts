import { dirname } from 'node:path'

/** Where the agent server's parts are mounted inside; without isolation they are used where they are. */
export const insideMounts = {
  runner: '/opt/tutti',
  sourceObjects: '/mirror',
  egress: '/run/tutti',
} as const

export interface AgentServerFiles {
  /** From `buildAgentServer`. */
  readonly serverPath: string
  /** An object folder with what came from the source and nothing of any agent: whatever lies there, every sandbox can read. */
  readonly sourceObjects: string
  /** Folder with the egress proxy's socket `egress.sock`, when there is one. */
  readonly egressFolder?: string
}

/** What `SandboxSpec.readOnly` must have for `startAgentServer` to work in that sandbox. */
export function agentServerMounts(files: AgentServerFiles): { host: string; inside: string }[] {
  const mounts: { host: string; inside: string }[] = [
    { host: dirname(files.serverPath), inside: insideMounts.runner },
    { host: files.sourceObjects, inside: insideMounts.sourceObjects },
  ]
  if (files.egressFolder !== undefined) mounts.push({ host: files.egressFolder, inside: insideMounts.egress })
  return mounts
}
