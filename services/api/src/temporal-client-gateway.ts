import {
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  isGrpcServiceError,
  type Client,
} from '@temporalio/client'
import { ApplicationFailure, type SearchAttributePair } from '@temporalio/common'
import {
  TuttiError,
  agentWorkflowId,
  ensembleWorkflowId,
  ifFound,
  sharedTaskQueue,
  systemClock,
} from '@tutti/core'
import {
  ensembleUpdates,
  searchAttributeKeys as attributes,
  workflowTypes,
  type CloudAgentInput,
  type CommandAnswer,
  type ParallelAgentsInput,
} from '@tutti/workflows'

import type { TemporalGateway } from './temporal-gateway.ts'

/** The server refuses to start a workflow id again within a second, and a run may return just when a command arrives. */
const retryEveryMs = 250
/** gRPC: RESOURCE_EXHAUSTED, ABORTED, UNAVAILABLE. */
const transientCodes = new Set([8, 10, 14])
/** Temporal's limit for a static summary is 200 bytes of text. */
const summaryChars = 60
const attributeChars = 200

export interface TemporalGatewayOptions {
  readonly client: Client
  /** Where workflows run. Default: {@link sharedTaskQueue}. */
  readonly taskQueue?: string
  /** How long a call waits for Temporal and a worker, in milliseconds. Default 30 s: a worker that is replaced is back well within it. */
  readonly answerWithinMs?: number
}

/** The gateway over a real Temporal client. Its namespace needs the four search attributes (docs/operations.md). */
export function createTemporalGateway(options: TemporalGatewayOptions): TemporalGateway {
  const { client, taskQueue = sharedTaskQueue, answerWithinMs = 30_000 } = options
  const startOptions = (input: CloudAgentInput | ParallelAgentsInput, pairs: SearchAttributePair[]) => ({
    taskQueue,
    staticSummary: input.title.slice(0, summaryChars),
    typedSearchAttributes: [
      { key: attributes.owner, value: input.owner },
      { key: attributes.repository, value: input.repository.slice(0, attributeChars) },
      ...pairs,
    ],
  })
  const agentOptions = (input: CloudAgentInput) => ({
    workflowId: agentWorkflowId(input.bcId),
    args: [input] as [CloudAgentInput],
    ...startOptions(input, [
      { key: attributes.status, value: input.state.status },
      ...(input.ensembleId ? [{ key: attributes.ensemble, value: input.ensembleId }] : []),
    ]),
  })

  return {
    async startAgent(input, signal) {
      await startOnce(signal, () =>
        client.workflow.start(workflowTypes.agent, {
          ...agentOptions(input),
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowIdConflictPolicy: 'FAIL',
        }),
      )
    },

    async startEnsemble(input, signal) {
      await startOnce(signal, () =>
        client.workflow.start(workflowTypes.ensemble, {
          workflowId: ensembleWorkflowId(input.ensembleId),
          args: [input],
          ...startOptions(input, [{ key: attributes.ensemble, value: input.ensembleId }]),
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowIdConflictPolicy: 'FAIL',
        }),
      )
    },

    async agentCommand(input, request, signal) {
      const update = { args: [request] as [typeof request], updateId: request.requestId }
      const { type } = request.command
      // A turn that runs means a run that is open, which the lighter call reaches; the other one is right for every state.
      if (input.state.status === 'RUNNING') {
        const handle = client.workflow.getHandle(agentWorkflowId(input.bcId))
        const answer = await ifFound(
          insist(signal, () => handle.executeUpdate<CommandAnswer, [typeof request]>(type, update)),
        )
        if (answer) return answer
      }
      return insist(signal, () =>
        client.workflow.executeUpdateWithStart<
          (input: CloudAgentInput) => Promise<unknown>,
          CommandAnswer,
          [typeof request]
        >(type, {
          ...update,
          startWorkflowOperation: new WithStartWorkflowOperation(workflowTypes.agent, {
            ...agentOptions(input),
            workflowIdReusePolicy: 'ALLOW_DUPLICATE',
            workflowIdConflictPolicy: 'USE_EXISTING',
          }),
        }),
      )
    },

    async stopEnsemble(ensembleId, requestId, signal) {
      const handle = client.workflow.getHandle(ensembleWorkflowId(ensembleId))
      // One that has ended is stopped.
      await ifFound(
        insist(signal, () =>
          handle.executeUpdate<string, [{ requestId: string }]>(ensembleUpdates.stop, {
            args: [{ requestId }],
            updateId: requestId,
          }),
        ),
      )
    },

    async ready(signal) {
      await call(signal, () => client.workflowService.getSystemInfo({}))
    },
  }

  async function startOnce(signal: AbortSignal, start: () => Promise<unknown>): Promise<void> {
    try {
      await insist(signal, start)
    } catch (error) {
      if (error instanceof TuttiError && error.cause instanceof WorkflowExecutionAlreadyStartedError) return
      throw error
    }
  }

  /** Repeats what the server refuses for the moment; update ids and workflow ids make a repeat harmless. */
  async function insist<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    const deadline = systemClock.monotonic() + answerWithinMs
    for (;;) {
      try {
        return await call(signal, attempt)
      } catch (error) {
        if (!isTransient(error) || systemClock.monotonic() + retryEveryMs > deadline)
          throw toTuttiError(error)
        await systemClock.sleep(retryEveryMs, signal)
      }
    }
  }

  function call<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    return client.connection.withAbortSignal(signal, () =>
      client.withDeadline(Date.now() + answerWithinMs, attempt),
    )
  }
}

function isTransient(error: unknown): boolean {
  // The update was accepted by a run that then returned; the next run answers it.
  if (failureOf(error)?.type === 'AcceptedUpdateCompletedWorkflow') return true
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  return isGrpcServiceError(cause) && transientCodes.has(cause.code)
}

function failureOf(error: unknown): ApplicationFailure | undefined {
  if (!(error instanceof WorkflowUpdateFailedError)) return undefined
  return error.cause instanceof ApplicationFailure ? error.cause : undefined
}

function toTuttiError(error: unknown): TuttiError {
  if (error instanceof TuttiError) return error
  const failure = failureOf(error)
  if (failure?.type === 'refused') {
    const state: unknown = failure.details?.[0]
    return new TuttiError(
      'failed_precondition',
      failure.message,
      typeof state === 'string' ? { state } : {},
      error,
    )
  }
  if (failure)
    return new TuttiError(
      'internal',
      'The workflow failed on this command; the server log has the cause.',
      {},
      error,
    )
  if (error instanceof WorkflowExecutionAlreadyStartedError) {
    return new TuttiError('already_exists', 'The workflow has been started before.', {}, error)
  }
  if (error instanceof WorkflowNotFoundError)
    return new TuttiError('not_found', 'The workflow is not running.', {}, error)
  if (error instanceof Error && error.name === 'AbortError') return TuttiError.from(error)
  return new TuttiError(
    'unavailable',
    'Temporal or its worker does not answer. `tutti doctor` shows both; the same call may be repeated.',
    {},
    error,
  )
}
