import { type AgentStatus, type Reason } from '@tutti/core'
import type { ParallelAgentWorkflowChild } from '@tutti/proto'
import { workflowStatusFromWire, composerStatusFromWire } from '@tutti/protocol/wire'

/** A child's state in one or two words, and how it should look. */
export interface StateWord {
  readonly word: string
  readonly tone: 'wait' | 'work' | 'good' | 'bad' | 'calm'
}

/** What the words are made of: a child of the stream, or an attempt of the result. */
type ChildState = Pick<ParallelAgentWorkflowChild, 'status' | 'workflowStatus' | 'reason' | 'queuePosition'> &
  Partial<Pick<ParallelAgentWorkflowChild, 'paused' | 'check'>>

export function stateOf(child: ChildState): StateWord {
  const status: AgentStatus = workflowStatusFromWire(child.workflowStatus)
  const reason = child.reason as Reason | ''
  if (child.paused === true) return { word: 'paused', tone: 'calm' }
  if (child.queuePosition !== undefined && child.queuePosition > 0) {
    return { word: `queued #${child.queuePosition}`, tone: 'wait' }
  }
  switch (status) {
    case 'RUNNING':
      return composerStatusFromWire(child.status) === 'CREATING'
        ? { word: 'starting', tone: 'wait' }
        : { word: 'working', tone: 'work' }
    case 'IDLE':
      if (reason === 'completed' || reason === '') {
        // It ended well, but what it made does not pass.
        const failed = child.check !== undefined && child.check.exitCode !== 0
        return { word: 'done', tone: failed ? 'calm' : 'good' }
      }
      return reason === 'nothing_to_deliver'
        ? { word: 'no change', tone: 'calm' }
        : { word: words(reason), tone: 'bad' }
    case 'ERROR':
      return { word: reason === '' ? 'failed' : words(reason), tone: 'bad' }
    case 'ARCHIVED':
    case 'EXPIRED':
      return { word: status.toLowerCase(), tone: 'calm' }
    case 'UNSPECIFIED':
      return { word: 'waiting', tone: 'wait' }
  }
}

const words = (reason: string): string => reason.replaceAll('_', ' ')

/** How a child's check went; empty when there was none yet. */
export function checkWord(child: ParallelAgentWorkflowChild): string {
  return child.check ? checkVerdict(child.check) : ''
}

/** On the wire a negative exit code stands for none: the check was killed or took too long. */
export function checkVerdict({ exitCode }: { readonly exitCode: number }): string {
  if (exitCode === 0) return 'passed'
  return exitCode < 0 ? 'killed' : `failed (${exitCode})`
}
