import type { AgentState, EnsemblePhase, Reason } from '@tutti/core'
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { upsertSearchAttributes } from '@temporalio/workflow'
import type { CloudAgentInput, ParallelAgentsInput } from './contract.ts'

const agentStatus = defineSearchAttributeKey('AgentStatus', SearchAttributeType.KEYWORD)

/** Makes the status searchable in the Temporal UI; called on changes only, since each is a history event. */
export function showStatus(state: { readonly status: string; readonly paused?: boolean }): void {
  upsertSearchAttributes([
    { key: agentStatus, value: state.paused ? `${state.status}_PAUSED` : state.status },
  ])
}

/** Current details of an agent (markdown): what an operator wants to know without our code. */
export function agentDetails(
  input: CloudAgentInput,
  state: AgentState,
  turns: number,
  incarnation: number,
  hasSandbox: boolean,
): string {
  return lines([
    `**${state.status}${state.paused ? ', paused' : ''}**${state.reason ? ` (${state.reason})` : ''}`,
    `- agent: \`${input.bcId}\` of ${input.owner}`,
    `- repository: ${input.repository}`,
    input.ensembleId && `- ensemble: \`${input.ensembleId}\``,
    `- turn: ${turns}${state.current ? ` (\`${state.current.turnId}\`${state.ending ? `, ending: ${state.ending}` : ''})` : ''}`,
    `- waiting turns: ${state.queue.length}`,
    `- sandbox: ${hasSandbox ? `incarnation ${incarnation}` : 'none'}`,
  ])
}

export interface ChildLine {
  readonly bcId: string
  readonly title: string
  readonly state: string
}

/** Current details of an ensemble: the phase and one line for each child. */
export function ensembleDetails(
  input: ParallelAgentsInput,
  phase: EnsemblePhase,
  reason: Reason | undefined,
  children: readonly ChildLine[],
): string {
  return lines([
    `**${phase}**${reason ? ` (${reason})` : ''}`,
    `- ensemble: \`${input.ensembleId}\` of ${input.owner}`,
    `- repository: ${input.repository}`,
    '',
    '| child | agent | state |',
    '| --- | --- | --- |',
    ...children.map(
      (child) => `| \`${child.bcId}\` | ${child.title.replaceAll('|', '\\|')} | ${child.state} |`,
    ),
  ])
}

const lines = (parts: readonly (string | false | undefined | null)[]): string =>
  parts.filter((part) => typeof part === 'string').join('\n')
