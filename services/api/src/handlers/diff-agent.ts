import { TuttiError } from '@tutti/core'
import type { DiffAgentRequest } from '@tutti/proto'

import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { streamDiff } from '../stream-diff.ts'

/** `DiffAgent`: from the agent's base to its newest checkpoint. */
export function createDiffAgent(deps: HandlerDeps) {
  return async function* (request: DiffAgentRequest, context: CallContext) {
    const { owner } = callerOf(context)
    const row = await deps.catalog.agents.get(owner, agentIdOf(request.bcId), context.signal)
    const { baseCommit, commit = baseCommit, repository } = row
    if (!baseCommit || !commit) {
      throw new TuttiError(
        'failed_precondition',
        'The agent has no workspace yet; wait until its first turn runs.',
        {
          state: row.state.status,
        },
      )
    }
    yield* streamDiff(deps, { owner, repository, baseCommit, commit }, context.signal)
  }
}
