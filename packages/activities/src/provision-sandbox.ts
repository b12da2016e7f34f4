import { limits, TuttiError, type AgentConfig } from '@tutti/core'
import { BootFailure, bootSandbox, type Booted } from './boot-sandbox.ts'
import { captureBetweenTurns } from './capture-between-turns.ts'
import { captureHinted } from './capture-hinted.ts'
import { createOpenBase } from './base-commit.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { moveAtOf } from './end-of-life.ts'
import { failWith, orFail, setupReasons } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { createKeepBase } from './keep-base.ts'
import { checkLog, pathFields, type RecoveredWorkspace } from '@tutti/workspace/log'
import type { RecoveryEvent } from '@tutti/protocol'
import { isInNoCommit } from '@tutti/workspace'
import { repositoryLocation } from '@tutti/store'
import { createOwnedBlobs } from './owned-blobs.ts'
import { restoreWorkspace } from './restore-workspace.ts'
import { createRunLogWriter, type RunLogWriter } from './run-log-writer.ts'
import type { HostSession, Sessions } from './sessions.ts'
import { createSessionWorkspace } from './session-workspace.ts'
import { followFileSyncs, syncFiles, takeNews } from './sync-files.ts'
import { watchAnswers } from './watch-answers.ts'
import { wantedWorkspace, type WantedWorkspace } from './wanted-workspace.ts'
import { createWorkspaceTracker } from './workspace-tracker.ts'

/**
 * Gives an agent a sandbox with its workspace: at most three boots before the deadline, each destroyed before the next. The
 * workspace is the newest checkpoint and the changes after it, so that a new incarnation goes on where the last one was.
 */
export function createProvisionSandbox(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  sessions: Sessions,
): Activities['provisionSandbox'] {
  const openBase = createOpenBase(deps)
  const keepBase = createKeepBase(deps)
  return (input) => {
    const provision = () =>
      withHeartbeat(input.heartbeatMs, async (signal, phase) => {
        const { bcId, owner, incarnation } = input
        const existing = sessions.find(bcId)
        if (existing?.incarnation === incarnation) return
        if (existing) await discard(deps, sessions, existing)

        const config = await configs.agent(input.configBlobId, signal)
        const row = await deps.catalog.agents.get(owner, bcId, signal)
        phase('mirror')
        const location = await repositoryLocation(deps.catalog.repositories, owner, config.repository, signal)
        const { mirror, commit: base } = await openBase(
          { owner, log: row.ensembleId ?? bcId, location, ref: config.ref, known: row.baseCommit },
          signal,
        )
        keepBase(mirror, base)
        const controller = new AbortController()
        const producer = { id: 'sandbox', epoch: incarnation }
        const log = await createRunLogWriter({
          ...deps,
          log: bcId,
          producer,
          signal: controller.signal,
        })
        // The first append shuts the last sandbox out of the log: what is read afterwards is all that it has left.
        await log.write({ type: 'sandbox', incarnation, state: 'creating' })
        await log.flush()
        const workspace = await wantedWorkspace(deps, input, signal)
        const { wanted: recovered, putBack, last } = workspace
        // While the sandbox is made: an agent with a long past is as soon at work as any other.
        const premise = checkLog(deps.eventLog, bcId, signal)
        premise.catch(() => {})
        let commit = recovered.commit ?? base
        // Another host may have made it.
        if (commit !== base) await deps.mirrors.restore(location, commit, signal)
        for (const call of recovered.openCalls)
          await log.write({ type: 'tool_call_completed', ...call, outcome: 'interrupted' })
        const booted = await boot(
          deps,
          { input, config, mirror, commit, base, recovered, premise, log, phase },
          signal,
        )
        const { sandbox, server, manifestDigest } = booted
        const { blobRefs } = deps.catalog
        const blobs = createOwnedBlobs(deps.blobs, (ids, using) => blobRefs.use(owner, ids, using))
        const recovery = recoveryOf(input, commit, booted, workspace)
        let { changes } = recovered
        if (putBack !== undefined) {
          phase('restore')
          const { requestId } = input.recovery!
          const { now } = workspace
          const restore = {
            bcId,
            incarnation,
            requestId,
            at: putBack,
            mirror,
            base,
            log,
            now,
            wanted: recovered,
          }
          commit = await restoreWorkspace({ ...deps, blobs }, { ...restore, ...booted }, signal).catch(
            async (thrown: unknown) => {
              await end(deps, booted)
              throw thrown
            },
          )
          // What a commit can have is in that one.
          changes = changes.filter(isInNoCommit)
        }
        const { expiresAt } = sandbox
        const gone = new AbortController()
        void server.lost.then(() => gone.abort())
        const tracker = createWorkspaceTracker({
          blobs,
          packs: createOwnedBlobs(deps.blobs, (ids, adding) => blobRefs.add(owner, ids, adding)),
          crashPoint: deps.crashPoint,
          incarnation,
          write: (...events) => log.write(...events),
          checkPack: (...given) => mirror.checkPack(...given),
          signal: controller.signal,
          gone: gone.signal,
          initial: changes,
          manifestDigest,
          git: recovered.git,
        })
        const parts = { bcId, incarnation, baseCommit: base, commit, server, mirror, keepBase, log, tracker }
        const session: HostSession = {
          bcId,
          owner,
          incarnation,
          config,
          sandbox,
          server,
          mirror,
          log,
          workspace: createSessionWorkspace(deps, parts),
          baseCommit: base,
          controller,
          exported: recovered.exported,
          summary: '',
          putBackTo: workspace.told,
          moveAt: moveAtOf(deps, sandbox.expiresAt),
          leaves: undefined,
          turnId: undefined,
          inTurn: false,
          quiet: false,
          turnFrom: 0,
          stopped: false,
          untold: new Set(recovered.synced.map((path) => pathFields(path).path)),
          killed: false,
        }
        server.onNews(() => takeNews(session))
        try {
          if (recovered.before || input.recovery) await log.write(recovery)
          await log.write({
            type: 'sandbox',
            incarnation,
            state: 'ready',
            commit,
            ...(isWhole(booted) && { manifestDigest }),
            ...(expiresAt && { expiresAt }),
          })
          // What no sandbox had yet comes on top of what was proven.
          await syncFiles(session, recovered.pending, signal)
          const logSequence = await log.flush()
          await deps.catalog.agents.project(bcId, { logSequence, baseCommit: base, incarnation }, signal)
        } catch (thrown) {
          // Nobody can come to know of this sandbox: the next attempt makes another one.
          await discard(deps, sessions, session)
          throw thrown
        }
        sessions.add(session)
        captureBetweenTurns(deps, session)
        captureHinted(deps, session)
        watchAnswers(deps, session)
        followFileSyncs(deps, session, last)
      })
    return orFail(provision, setupReasons)
  }
}

const isWhole = ({ withoutSubmodules, withoutRepository }: Booted): boolean =>
  withoutSubmodules.length === 0 && !withoutRepository

const maxMissing = 100

function recoveryOf(
  { incarnation, recovery }: Parameters<Activities['provisionSandbox']>[0],
  commit: string,
  { manifestDigest, withoutSubmodules, withoutRepository, steps }: Booted,
  { wanted, told, ms }: WantedWorkspace,
): RecoveryEvent {
  const { before, changes, git } = wanted
  const submodules = withoutSubmodules.map((path) => ({ ...pathFields(path), reason: 'submodule' as const }))
  const repository = withoutRepository ? [{ path: '.git', reason: 'unreadable' as const }] : []
  const missing = [...repository, ...submodules, ...wanted.missing]
  return {
    type: 'recovery',
    incarnation,
    reason: recovery ? 'requested' : (before ?? 'lost'),
    ...(recovery && { requestId: recovery.requestId }),
    ...(recovery?.at !== undefined && told !== undefined && { atOffset: told }),
    commit,
    replayed: changes.length,
    index:
      git && !missing.some(({ path }) => path === '.git' || path === '.git/index') ? 'restored' : 'rebuilt',
    manifestDigest,
    ...(wanted.capturedAt !== undefined && { capturedAt: wanted.capturedAt }),
    proven: wanted.manifestDigest !== undefined,
    missing: missing.slice(0, maxMissing),
    ...(missing.length > maxMissing && { moreMissing: missing.length - maxMissing }),
    steps: [{ name: 'fold', ms }, ...steps],
  }
}

interface BootRequest {
  readonly input: Parameters<Activities['provisionSandbox']>[0]
  readonly config: AgentConfig
  readonly mirror: Parameters<typeof bootSandbox>[1]['mirror']
  readonly commit: string
  readonly base: string
  readonly recovered: RecoveredWorkspace
  readonly premise: Promise<void>
  readonly log: RunLogWriter
  readonly phase: (name: string) => void
}

async function boot(deps: ActivityDeps, request: BootRequest, signal: AbortSignal): Promise<Booted> {
  const { input, config, mirror, commit, base, recovered, premise, log, phase } = request
  const { changes, git, manifestDigest } = recovered
  const { bcId, incarnation } = input
  let failure = new BootFailure('boot', 'The time to get ready was over before the first boot.')
  for (let attempt = 1; attempt <= limits.maxBoots && deps.clock.now() < input.deadlineMs; attempt += 1) {
    try {
      return await bootSandbox(
        deps,
        {
          key: `${bcId}/${incarnation}`,
          owner: input.owner,
          policy: config.sandbox,
          mirror,
          commit,
          base,
          // An agent's checkpoints are ours: to its git, what it has not committed is uncommitted.
          head: base,
          branch: input.branch,
          changes,
          ...(git && { git }),
          ...(manifestDigest !== undefined && { manifestDigest }),
          setupCommand: config.setupCommand,
          premise,
          deadline: input.deadlineMs,
          onDenied: (target) => deps.log.info({ bc_id: bcId, target }, 'egress denied'),
          onStep(state) {
            phase(state)
            if (state === 'creating' && attempt === 1) return
            void log.write({ type: 'sandbox', incarnation, state }).catch(() => undefined)
          },
        },
        signal,
      )
    } catch (thrown) {
      if (!(thrown instanceof BootFailure)) {
        const error = TuttiError.from(thrown)
        if (error.code !== 'cancelled') await tell(log, incarnation, error.message)
        throw error
      }
      failure = thrown
      await tell(log, incarnation, `Boot ${attempt} of ${limits.maxBoots} failed. ${failure.message}`)
    }
  }
  throw failWith(failure.stage === 'setup' ? 'setup_failed' : 'boot_timeout', failure.message)
}

async function tell(log: RunLogWriter, incarnation: number, detail: string): Promise<void> {
  await log.write({ type: 'sandbox', incarnation, state: 'destroyed', detail: detail.slice(0, 4096) })
  await log.flush()
}

/** A life that another one takes over from; its agent is told nothing any more. */
async function discard(
  deps: ActivityDeps,
  sessions: Sessions,
  session: NonNullable<ReturnType<Sessions['find']>>,
): Promise<void> {
  session.controller.abort()
  sessions.remove(session)
  await end(deps, session)
}

async function end(
  deps: ActivityDeps,
  { server, sandbox }: Pick<Booted, 'server' | 'sandbox'>,
): Promise<void> {
  await server.close().catch(() => undefined)
  await deps.sandboxes.destroy(sandbox.ref, new AbortController().signal)
}
