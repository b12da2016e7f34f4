import type { AgentState, EnsemblePhase, Reason } from '@tutti/core'
import { isEnsembleEnd } from '@tutti/core'
import { patched, upsertSearchAttributes } from '@temporalio/workflow'
import type { CloudAgentInput, ParallelAgentsInput } from './contract.ts'
import { searchAttributeKeys } from './search-attribute-keys.ts'

/**
 * Makes the status searchable in the Temporal UI, whenever it is another one: each time is an event of the history and a write of
 * the server's.
 */
export function createStatusDisplay(): (state: {
  readonly status: string
  readonly paused?: boolean
}) => void {
  let shown: string | undefined
  return (state) => {
    const value = state.paused ? `${state.status}_PAUSED` : state.status
    // Histories from before this patch have an event for each call.
    if (value === shown && patched('status-shown-once')) return
    shown = value
    upsertSearchAttributes([{ key: searchAttributeKeys.status, value }])
  }
}

/** What an operator sees of an agent's sandbox. */
export type SandboxStage = 'none' | 'waiting' | 'making' | 'ready'

const stageTexts: Readonly<Record<SandboxStage, string>> = {
  none: 'none',
  waiting: 'none yet: waits for a slot on a host (pending activity `admit` shows its position)',
  making:
    'being made, once what was said is recorded: checkout and setup command (pending activity `provisionSandbox` shows the step)',
  ready: 'ready',
}

/** What of an agent is not in its state. */
export interface AgentProgress {
  /** Turns that it has begun. */
  readonly turns: number
  readonly waitsForAnswer: boolean
  readonly incarnation: number
  readonly stage: SandboxStage
}

/** Current details of an agent (markdown): what an operator wants to know without our code. */
export function agentDetails(
  input: Pick<CloudAgentInput, 'bcId' | 'owner' | 'repository' | 'ensembleId'>,
  state: AgentState,
  { turns, waitsForAnswer, incarnation, stage }: AgentProgress,
): string {
  const { bcId, owner, repository, ensembleId } = input
  const running = state.status === 'RUNNING'
  return lines([
    `**${state.status}${state.paused ? ', paused' : ''}**${state.reason ? ` (${state.reason})` : ''}`,
    '',
    `- agent: \`${bcId}\` of ${owner}`,
    `- repository: ${repository}`,
    ensembleId && `- ensemble: \`${ensembleId}\``,
    `- turn: ${turns}, ${turnText(state, waitsForAnswer)}`,
    `- waiting turns: ${state.queue.length}`,
    `- sandbox: ${stageTexts[stage]}${stage === 'none' ? '' : `, number ${incarnation} of this agent`}`,
    '',
    `What it does: \`tutti agent events ${bcId}\`.`,
    waitsForAnswer &&
      `What it asks: \`tutti agent get ${bcId}\`; to answer: \`tutti agent answer ${bcId} "…"\`.`,
    running && `To end this turn: \`tutti agent stop ${bcId}\`; to end everything: Request Cancellation.`,
  ])
}

function turnText({ current, ending }: AgentState, waitsForAnswer: boolean): string {
  if (!current) return 'none at work'
  if (ending) return `being ended: ${ending}`
  return waitsForAnswer ? 'waits for an answer' : 'at work'
}

export interface ChildLine {
  readonly bcId: string
  readonly title: string
  readonly state: string
}

/** Current details of an ensemble: the phase and one line for each child. */
export function ensembleDetails(
  input: Pick<ParallelAgentsInput, 'ensembleId' | 'owner' | 'repository'>,
  phase: EnsemblePhase,
  reason: Reason | undefined,
  children: readonly ChildLine[],
): string {
  const { ensembleId, owner, repository } = input
  return lines([
    `**${phase}**${reason ? ` (${reason})` : ''}`,
    '',
    `- ensemble: \`${ensembleId}\` of ${owner}`,
    `- repository: ${repository}`,
    '',
    '| agent | task | state |',
    '| --- | --- | --- |',
    ...children.map(
      (child) => `| \`${child.bcId}\` | ${child.title.replaceAll('|', '\\|')} | ${child.state} |`,
    ),
    '',
    !isEnsembleEnd(phase) && `To end it: \`tutti ensemble stop ${ensembleId}\`, or Request Cancellation.`,
  ])
}

const lines = (parts: readonly (string | false | undefined | null)[]): string =>
  parts.filter((part) => typeof part === 'string').join('\n')
