import {
  BackgroundComposerStatus,
  type Agent,
  type AgentExtensions,
  type RepositorySource,
} from '@tutti/proto'
import { workflowStatusFromWire } from '@tutti/protocol/wire'
import { formatDuration } from '../values/duration.ts'
import { table } from './table.ts'
import { answerCommand } from './question-words.ts'
import { safeLine, safeText } from './terminal-text.ts'
import { wayOn, waysOn } from './way-on.ts'

/** `IDLE`, `IDLE+paused`, `ERROR (timeout)`. */
export function agentStatusText(workflowStatus: number, state: AgentExtensions | undefined): string {
  const status = workflowStatusFromWire(workflowStatus)
  const paused = state?.paused === true ? '+paused' : ''
  const reason =
    state !== undefined && state.reason !== '' && status === 'ERROR' ? ` (${safeLine(state.reason)})` : ''
  const queued = state?.queuePosition === undefined ? '' : ` (queued #${state.queuePosition})`
  return `${status}${paused}${reason}${queued}`
}

export const repositoryText = (source: RepositorySource | undefined): string =>
  source?.location.value === undefined
    ? ''
    : safeLine(source.location.value) + (source.ref === '' ? '' : `@${safeLine(source.ref)}`)

export const timestampMs = (time: { readonly seconds: bigint; readonly nanos: number } | undefined): number =>
  time ? Number(time.seconds) * 1000 + Math.floor(time.nanos / 1e6) : 0

/** `3m05s ago`; empty without a time. */
export const ago = (ms: number, now: number): string => (ms === 0 ? '' : `${formatDuration(now - ms)} ago`)

export function agentTable(agents: readonly Agent[], now: number): string[] {
  const stuck = agents.filter((agent) => isInError(agent) && (agent.state?.queuedTurns ?? 0) > 0)
  const lines = table([
    ['ID', 'STATUS', 'TURNS', 'FILES', 'UPDATED', 'TITLE'],
    ...agents.map((agent) => [
      safeLine(agent.bcId),
      agentStatusText(agent.workflowStatus, agent.state) +
        (stuck.includes(agent) ? `, ${agent.state!.queuedTurns} waiting` : ''),
      String(agent.completedTurns),
      String(agent.filesChanged),
      ago(timestampMs(agent.updatedAt), now),
      safeLine(agent.title),
    ]),
  ])
  if (stuck.length > 0) {
    const paused = stuck.every(({ state }) => state?.paused === true)
    lines.push('', `Where turns wait in ERROR, ${wayOn(paused, 'ID')}; "tutti agent get ID" says more.`)
  }
  const partial = agents.flatMap(({ bcId, state }) =>
    state !== undefined && state.missing !== '' ? [`${safeLine(bcId)} ${missingText(state.missing)}`] : [],
  )
  if (partial.length > 0) lines.push('', ...partial)
  return lines
}

/** What the server cannot show of something, as it says it. */
export const missingText = (missing: string): string => `is not whole. ${safeLine(missing)}`

function sandboxText({ status, state }: Agent): string {
  if (status === BackgroundComposerStatus.CREATING) return 'none yet: it waits for a slot, or is being made'
  return state && state.incarnation > 0 ? `number ${state.incarnation}` : ''
}

const isInError = ({ workflowStatus }: Agent) => workflowStatusFromWire(workflowStatus) === 'ERROR'

/** Everything about one agent. */
export function agentDetails(agent: Agent, now: number): string[] {
  const { state } = agent
  const rows: [string, string][] = [
    ['id', safeLine(agent.bcId)],
    ['title', safeLine(agent.title)],
    ['status', agentStatusText(agent.workflowStatus, state)],
    ['reason', safeLine(state?.reason ?? '')],
    ['ensemble', safeLine(state?.ensembleId ?? '')],
    ['repository', repositoryText(agent.repository)],
    ['agent', safeLine(agent.agent?.spec ?? '')],
    ['base', safeLine(agent.baseCommit)],
    ['checkpoint', safeLine(state?.commit ?? '')],
    ['files', String(agent.filesChanged)],
    ['turns', `${agent.completedTurns} ended, ${state?.queuedTurns ?? 0} waiting`],
    ['sandbox', sandboxText(agent)],
    ['pull request', safeLine(agent.pullRequest?.url ?? '')],
    ['created', ago(timestampMs(agent.createdAt), now)],
    ['updated', ago(timestampMs(agent.updatedAt), now)],
  ]
  const lines = table(rows.filter(([, value]) => value !== ''))
  if (state?.question) {
    lines.push('', `It asks: ${safeText(state.question.text, { colors: false })}`)
    for (const option of state.question.options) lines.push(`  - ${safeLine(option)}`)
    if (state.question.defaultAnswer !== '')
      lines.push(`By default: ${safeLine(state.question.defaultAnswer)}`)
    lines.push(`Answer with: ${answerCommand(agent.bcId)}`)
  }
  if (state !== undefined && state.missing !== '') lines.push('', `It ${missingText(state.missing)}`)
  if (agent.detail !== '') lines.push('', safeText(agent.detail.trimEnd(), { colors: false }))
  const ways = state && isInError(agent) ? waysOn(state, safeLine(agent.bcId)) : undefined
  if (ways !== undefined) lines.push('', ways)
  if (agent.summary !== '') lines.push('', safeText(agent.summary, { colors: false }))
  return lines
}
