import { clone, create, equals } from '@bufbuild/protobuf'
import { composerStatus, isAtRest, reasons, type AgentId, type EnsembleId } from '@tutti/core'
import {
  ParallelAgentWorkflowChildSchema,
  ParallelAgentWorkflowStatusUpdateSchema,
  ParallelAgentWorkflowStatusUpdate_Phase,
  PullRequestSchema,
  type ParallelAgentWorkflowStatusUpdate,
} from '@tutti/proto'

import type { ChildView, RunEvent } from '../run-event.ts'
import { questionToWire } from './question.ts'
import { composerStatusToWire, phaseToWire, workflowStatusToWire } from './statuses.ts'

/** What is known before the first event: every child, none of which has begun. */
export function initialEnsembleStatus(
  ensembleId: EnsembleId,
  children: readonly { readonly bcId: AgentId; readonly agent: string }[],
): ParallelAgentWorkflowStatusUpdate {
  return create(ParallelAgentWorkflowStatusUpdateSchema, {
    ensembleId,
    children: children.map(({ bcId, agent }) => ({ bcId, agent })),
  })
}

/**
 * The status after one more event of the ensemble's log, or the same object when nothing in it changed: a repeated phase or a
 * repeated end of a child is not an update. Offsets are set by whoever reads the log.
 */
export function foldEnsembleStatus(
  status: ParallelAgentWorkflowStatusUpdate,
  event: RunEvent,
  at: number,
): ParallelAgentWorkflowStatusUpdate {
  const next = clone(ParallelAgentWorkflowStatusUpdateSchema, status)
  switch (event.type) {
    case 'phase': {
      const phase = phaseToWire(event.phase)
      if (phase === status.phase || hasEnded(status)) return status
      next.phase = phase
      next.reason = event.reason ?? ''
      next.message = event.detail ?? (event.reason ? reasons[event.reason].sentence : '')
      next.phases.push({
        $typeName: 'aiserver.v1.ParallelAgentWorkflowPhaseTime',
        phase,
        startedAtMs: BigInt(at),
      })
      return next
    }
    case 'child':
      foldChild(next, event.child, at)
      break
    case 'combined':
      next.synthesis = {
        $typeName: 'tutti.v1.Synthesis',
        strategy: next.synthesis?.strategy ?? '',
        commit: event.commit,
        branch: next.synthesis?.branch ?? '',
        baseCommit: '',
        bcIds: [...event.included],
      }
      break
    case 'verified':
      if (!next.synthesis) return status
      next.synthesis.check = {
        $typeName: 'tutti.v1.CheckResult',
        exitCode: event.result.exitCode ?? -1,
        durationMs: BigInt(Math.round(event.result.durationMs)),
        outputTail: event.result.tail,
        logBlobId: new Uint8Array(),
      }
      break
    case 'delivery':
      if (event.outcome !== 'delivered') return status
      if (next.synthesis) next.synthesis.branch = event.branch
      if (event.pullRequest) {
        next.pullRequest = create(PullRequestSchema, {
          url: event.pullRequest.url,
          number: BigInt(event.pullRequest.number),
          branch: event.branch,
          headCommit: event.commit,
          ensembleId: status.ensembleId,
        })
      }
      break
    default:
      return status
  }
  return equals(ParallelAgentWorkflowStatusUpdateSchema, status, next) ? status : next
}

/** COMPLETED or ERROR: nothing follows. */
export const hasEnded = ({ phase }: ParallelAgentWorkflowStatusUpdate): boolean =>
  phase === ParallelAgentWorkflowStatusUpdate_Phase.COMPLETED ||
  phase === ParallelAgentWorkflowStatusUpdate_Phase.ERROR

function foldChild(next: ParallelAgentWorkflowStatusUpdate, view: ChildView, at: number): void {
  const known = next.children.find(({ bcId }) => bcId === view.bcId)
  const child = known ?? create(ParallelAgentWorkflowChildSchema, { bcId: view.bcId })
  if (!known) next.children.push(child)
  child.agent = view.agent || child.agent
  child.status = composerStatusToWire(composerStatus(view.status, view.hadSandbox))
  child.workflowStatus = workflowStatusToWire(view.status)
  child.reason = view.reason ?? ''
  if (view.queuePosition === undefined) delete child.queuePosition
  else child.queuePosition = view.queuePosition
  if (view.question) child.question = questionToWire(view.question)
  else delete child.question
  child.commit = view.commit ?? child.commit
  child.filesChanged = view.filesChanged ?? child.filesChanged
  child.headline = view.summary ?? child.headline
  if (view.status === 'RUNNING' && child.startedAtMs === 0n) child.startedAtMs = BigInt(at)
  if (isAtRest(view) && child.endedAtMs === 0n) child.endedAtMs = BigInt(at)
  if (view.checkExitCode !== undefined) {
    child.check = {
      $typeName: 'tutti.v1.CheckResult',
      exitCode: view.checkExitCode ?? -1,
      durationMs: 0n,
      outputTail: '',
      logBlobId: new Uint8Array(),
    }
  }
}
