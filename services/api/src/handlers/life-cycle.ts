import { statusOfKey, type AgentCommand } from '@tutti/core'
import type {
  ArchiveBackgroundComposerRequest,
  PauseBackgroundComposerRequest,
  ResumeBackgroundComposerRequest,
  StopAgentRequest,
} from '@tutti/proto'
import { workflowStatusToWire } from '@tutti/protocol/wire'

import { toExtensions } from '../agent-views.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf, commandAgent } from '../commands.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { requestIdOf } from '../new-id.ts'

/** Pause, resume, archive (seed 001) and stop: the columns of the design's table that carry no message. */
export function createLifeCycle(deps: HandlerDeps) {
  const { catalog, pendingTurns } = deps

  return {
    async pauseBackgroundComposer({ bcId }: PauseBackgroundComposerRequest, context: CallContext) {
      const { row, workflowStatus } = await give(bcId, { type: 'pause' }, context)
      return { workflowStatus, tutti: toExtensions(row) }
    },
    async resumeBackgroundComposer({ bcId }: ResumeBackgroundComposerRequest, context: CallContext) {
      const { row, workflowStatus } = await give(bcId, { type: 'resume' }, context)
      return { workflowStatus, tutti: toExtensions(row) }
    },
    async archiveBackgroundComposer({ bcId }: ArchiveBackgroundComposerRequest, context: CallContext) {
      const { row, workflowStatus } = await give(bcId, { type: 'archive' }, context)
      return { workflowStatus, tutti: toExtensions(row) }
    },
    async stopAgent({ bcId, all }: StopAgentRequest, context: CallContext) {
      const { row, workflowStatus } = await give(bcId, { type: 'stop', all }, context)
      return { workflowStatus, state: toExtensions(row) }
    },
  }

  /** The status is the workflow's answer; what else is shown is the catalog's, which may be a moment behind. */
  async function give(id: string, command: AgentCommand, { signal, values }: CallContext) {
    const { owner } = callerOf({ values })
    const bcId = agentIdOf(id)
    const before = await catalog.agents.get(owner, bcId, signal)
    const answer = await commandAgent(
      deps,
      { owner, bcId, requestId: requestIdOf(owner, ''), command },
      signal,
    )
    if (command.type === 'resume' && answer.state === 'RUNNING') pendingTurns.add(bcId, before.logSequence)
    const row = await catalog.agents.get(owner, bcId, signal)
    const paused = answer.state.endsWith('+paused')
    return {
      row: { ...row, state: { ...row.state, paused } },
      workflowStatus: workflowStatusToWire(statusOfKey(answer.state)),
    }
  }
}
