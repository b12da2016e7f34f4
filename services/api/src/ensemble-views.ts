import { create } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import {
  TuttiError,
  composerStatus,
  isEnsembleId,
  type AgentConfig,
  type Attempt,
  type EnsembleConfig,
  type EnsembleId,
} from '@tutti/core'
import { EnsembleSchema, PullRequestMode, type Ensemble } from '@tutti/proto'
import { encodeOffset, type AttemptResult, type EnsembleResult } from '@tutti/protocol'
import { composerStatusToWire, phaseToWire, workflowStatusToWire } from '@tutti/protocol/wire'
import type { AgentRow, EnsembleRow } from '@tutti/store'

import { repositoryCase } from './agent-views.ts'
import type { EnsembleProgress } from './ensemble-progress.ts'

/** What a full view of an ensemble is made from. */
export interface EnsembleParts {
  readonly row: EnsembleRow
  readonly children: readonly AgentRow[]
  /** These are absent where they are lost. */
  readonly config: EnsembleConfig | undefined
  readonly childConfigs: readonly (AgentConfig | undefined)[]
  readonly prompt: string | undefined
  /** In words what is. */
  readonly missing: string
  /** What has been stored of the result; absent while there is none. */
  readonly result?: EnsembleResult
  readonly progress: EnsembleProgress
  /** What the children have recorded: the result has the exit codes of their checks, these have the output. */
  readonly recorded: readonly Attempt[]
}

/** An ensemble as a list shows it: without attempts and report. */
export const toListedEnsemble = (row: EnsembleRow): Ensemble => create(EnsembleSchema, listedInit(row))

/** The whole ensemble; attempts come from the stored result, or as far as there is none from the children's rows. */
export function toEnsemble(parts: EnsembleParts): Ensemble {
  const { row, children, result, progress, recorded } = parts
  const attempts = children.map((child) =>
    attemptInit(
      child,
      result?.attempts.find(({ bc_id }) => bc_id === child.bcId),
      progress.waiting.get(child.bcId),
      recorded.find(({ bcId }) => bcId === child.bcId)?.check?.tail ?? '',
    ),
  )
  const synthesis = result?.synthesis
  const pullRequest = result?.pull_request
  return create(EnsembleSchema, {
    ...listedInit(row),
    attempts,
    phases: [...progress.phases],
    spec: specInit(parts),
    missing: parts.missing,
    baseCommit: children.find(({ baseCommit }) => baseCommit)?.baseCommit ?? '',
    ...(synthesis
      ? {
          synthesis: {
            strategy: synthesis.strategy,
            commit: synthesis.commit,
            branch: synthesis.branch,
            bcIds: [...synthesis.included],
            ...(synthesis.check
              ? { check: { exitCode: synthesis.check.exit_code ?? -1, outputTail: synthesis.check.tail } }
              : {}),
          },
        }
      : {}),
    ...(result ? { report: reportInit(result) } : {}),
    deliveryFailure: result?.delivery_failure?.failure ?? '',
    deliveryDetail: result?.delivery_failure?.detail ?? '',
    ...(pullRequest
      ? {
          pullRequest: {
            url: pullRequest.url,
            number: BigInt(pullRequest.number),
            branch: pullRequest.branch,
            repository: row.repository,
            ensembleId: row.ensembleId,
          },
        }
      : {}),
  })
}

/** The id of a request as the type that the code uses; the rules of the request have checked its form. */
export function ensembleIdOf(text: string, field = 'ensemble_id'): EnsembleId {
  if (isEnsembleId(text)) return text
  throw new TuttiError('invalid_argument', `${field} must be an ensemble id: en- and a version 7 UUID.`, {
    field,
  })
}

const listedInit = (row: EnsembleRow) => ({
  ensembleId: row.ensembleId,
  phase: phaseToWire(row.phase),
  reason: row.reason ?? '',
  title: row.title,
  createdAt: timestampFromMs(row.createdAt),
  updatedAt: timestampFromMs(row.updatedAt),
  headOffsetKey: encodeOffset(row.ensembleId, row.logSequence),
})

function attemptInit(
  child: AgentRow,
  stored: AttemptResult | undefined,
  queuePosition: number | undefined,
  checkTail: string,
) {
  const status = stored?.status ?? child.state.status
  return {
    bcId: child.bcId,
    status: composerStatusToWire(composerStatus(status, child.hadSandbox)),
    workflowStatus: workflowStatusToWire(status),
    ...(queuePosition === undefined ? {} : { queuePosition }),
    reason: stored?.reason ?? child.state.reason ?? '',
    commit: stored?.commit ?? child.commit ?? '',
    filesChanged: stored?.files_changed ?? child.filesChanged,
    summary: stored?.summary ?? '',
    agent: child.agentSpec,
    ...(stored?.check ? { check: { exitCode: stored.check.exit_code ?? -1, outputTail: checkTail } } : {}),
  }
}

function reportInit({ report }: EnsembleResult) {
  return {
    conflicts: report.conflicts.map(({ path, kind, line, base, versions }) => ({
      path,
      kind,
      line,
      baseText: base,
      versions: versions.map(({ bc_id, text }) => ({ bcIds: [bc_id], text })),
    })),
    equalGroups: report.equal_groups.map((bcIds) => ({ bcIds: [...bcIds] })),
    failures: report.failures.map(({ bc_id, reason, message, log_command }) => ({
      bcId: bc_id,
      reason,
      message,
      logCommand: log_command,
    })),
    leftOut: report.left_out.map(({ bc_id, why }) => ({ bcId: bc_id, why })),
  }
}

const modes = { none: PullRequestMode.NONE, draft: PullRequestMode.DRAFT, ready: PullRequestMode.READY }

/** As it was asked for, with the defaults that were filled in. */
function specInit({ row, config, children, childConfigs, prompt = '' }: EnsembleParts) {
  const known = {
    prompt,
    repository: { location: repositoryCase(row.repository), ref: config?.ref ?? '' },
    count: children.length,
    strategy: row.strategy,
    agents: children.map(({ agentSpec }, index) => ({
      spec: agentSpec,
      promptSuffix: childConfigs[index]?.promptSuffix ?? '',
    })),
  }
  if (!config) return known
  return {
    ...known,
    checkCommand: config.checkCommand,
    setupCommand: config.setupCommand,
    pullRequest: modes[config.delivery.mode],
    branch: config.delivery.branch,
    title: config.delivery.title,
    baseBranch: config.delivery.base,
  }
}
