/** `aiserver.v1.CloudAgentWorkflowStatus` without its prefix (seed 000 §3). */
export const agentStatuses = ['UNSPECIFIED', 'RUNNING', 'IDLE', 'ERROR', 'ARCHIVED', 'EXPIRED'] as const
export type AgentStatus = (typeof agentStatuses)[number]

/** `aiserver.v1.BackgroundComposerStatus` without its prefix (seed 001). */
export const composerStatuses = [
  'UNSPECIFIED',
  'RUNNING',
  'FINISHED',
  'ERROR',
  'CREATING',
  'EXPIRED',
] as const
export type ComposerStatus = (typeof composerStatuses)[number]

/**
 * The status that clients of the seeds see (seed 000 §3). A running agent whose first turn has no sandbox yet is CREATING
 * (design §4); the other states map one to one.
 */
export function composerStatus(status: AgentStatus, hadSandbox: boolean): ComposerStatus {
  switch (status) {
    case 'UNSPECIFIED':
      return 'UNSPECIFIED'
    case 'RUNNING':
      return hadSandbox ? 'RUNNING' : 'CREATING'
    case 'IDLE':
    case 'ARCHIVED':
      return 'FINISHED'
    case 'ERROR':
      return 'ERROR'
    case 'EXPIRED':
      return 'EXPIRED'
  }
}
