import type { ChildEnd } from '@tutti/activities'
import { agentWorkflowId, firstTurnId, initialAgentState } from '@tutti/core'
import {
  ChildWorkflowCancellationType,
  ParentClosePolicy,
  TemporalFailure,
  isCancellation,
  startChild,
  type ChildWorkflowHandle,
} from '@temporalio/workflow'
import type { cloudAgent } from './cloud-agent.ts'
import { workflowTypes, type ChildInput, type CloudAgentInput, type ParallelAgentsInput } from './contract.ts'
import { readFailure } from './failure.ts'
import { searchAttributeKeys } from './search-attribute-keys.ts'

/** Children started per workflow task: keeps a task's message far under Temporal's 4 MB. */
const batchSize = 10

export interface ChildrenDeps {
  readonly input: ParallelAgentsInput
  /** A child's state for the operator, in one word. */
  readonly onState: (child: ChildInput, state: string) => void
  /** All have been started; called once. */
  readonly onStarted: () => void
}

/**
 * Starts every child and waits for every one to end, whatever the others do: no failure or hang of a child stops a sibling.
 * Cancelling the surrounding scope cancels the children and still waits for their ends.
 */
export async function runChildren(deps: ChildrenDeps): Promise<ChildEnd[]> {
  const { children } = deps.input
  const ends: Promise<ChildEnd>[] = []
  for (let from = 0; from < children.length; from += batchSize) {
    const batch = children.slice(from, from + batchSize)
    const started = await Promise.all(batch.map((child) => start(deps.input, child)))
    for (const [index, handle] of started.entries()) {
      const child = batch[index]!
      if ('reason' in handle) {
        deps.onState(child, describeEnd(handle))
        ends.push(Promise.resolve(handle))
      } else {
        // Whether it waits for a slot or works is in its own details.
        deps.onState(child, 'started')
        ends.push(settle(child, handle, deps))
      }
    }
  }
  deps.onStarted()
  return Promise.all(ends)
}

type Handle = ChildWorkflowHandle<typeof cloudAgent>

/** Its end at once when the ensemble was cancelled before this child began, or when it cannot be started. */
async function start(input: ParallelAgentsInput, child: ChildInput): Promise<Handle | ChildEnd> {
  const argument: CloudAgentInput = {
    bcId: child.bcId,
    owner: input.owner,
    title: child.title,
    repository: input.repository,
    configBlobId: child.configBlobId,
    state: initialAgentState,
    incarnation: 0,
    turns: 0,
    hadSandbox: false,
    firstTurn: { turnId: firstTurnId(child.bcId), promptBlobId: child.promptBlobId, source: 'API' },
    ensembleId: input.ensembleId,
    hasCheck: input.hasCheck,
    timings: input.timings,
  }
  try {
    return await startChild<typeof cloudAgent>(workflowTypes.agent, {
      workflowId: agentWorkflowId(child.bcId),
      args: [argument],
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
      staticSummary: child.title.slice(0, 200),
      typedSearchAttributes: [
        { key: searchAttributeKeys.owner, value: input.owner },
        { key: searchAttributeKeys.repository, value: input.repository },
        { key: searchAttributeKeys.ensemble, value: input.ensembleId },
        { key: searchAttributeKeys.status, value: 'UNSPECIFIED' },
      ],
    })
  } catch (thrown) {
    const { bcId } = child
    if (isCancellation(thrown)) return { bcId, status: 'IDLE', reason: 'stopped_by_user' }
    // Only what Temporal refused is the child's own failure; anything else is a defect of this code and must show as one.
    if (thrown instanceof TemporalFailure) return { bcId, status: 'ERROR', reason: 'internal' }
    throw thrown
  }
}

const describeEnd = (end: ChildEnd): string => `${end.status} (${end.reason})`

async function settle(child: ChildInput, handle: Handle, deps: ChildrenDeps): Promise<ChildEnd> {
  const end = await endOf(child, handle)
  deps.onState(child, describeEnd(end))
  return end
}

async function endOf({ bcId }: ChildInput, handle: Handle): Promise<ChildEnd> {
  try {
    const { status, reason } = await handle.result()
    return { bcId, status: status === 'RUNNING' || status === 'UNSPECIFIED' ? 'ERROR' : status, reason }
  } catch (thrown) {
    const failure = readFailure(thrown)
    if (!failure) return { bcId, status: 'IDLE', reason: 'stopped_by_user' }
    return { bcId, status: 'ERROR', reason: failure.reason }
  }
}
