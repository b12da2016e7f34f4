import type { Booted } from './boot-sandbox.ts'
import { bootNewest } from './boot-newest.ts'
import { captureBetweenTurns } from './capture-between-turns.ts'
import { captureHinted } from './capture-hinted.ts'
import { createOpenBase } from './base-commit.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { leaveBeforeEnd } from './end-of-life.ts'
import { orFail, setupReasons } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { createKeepBase } from './keep-base.ts'
import { checkLog } from '@tutti/workspace/log'
import { repositoryLocation } from '@tutti/store'
import { createOwnedBlobs } from './owned-blobs.ts'
import { createHostSession } from './host-session.ts'
import { recoveryEvent } from './recovery-event.ts'
import { restoreWorkspace } from './restore-workspace.ts'
import { createRunLogWriter } from './run-log-writer.ts'
import type { Sessions } from './sessions.ts'
import { followFileSyncs, syncFiles } from './sync-files.ts'
import { takeNews } from './take-news.ts'
import { watchAnswers } from './watch-answers.ts'
import { wantedWorkspace } from './wanted-workspace.ts'

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
        const folded = await wantedWorkspace(deps, input, signal)
        // While the sandbox is made, and what is archived was looked at then: an agent with a long past is as soon at work as any other.
        const premise = checkLog(deps.eventLog, bcId, { from: folded.archived }, signal)
        premise.catch(() => {})
        for (const call of folded.wanted.openCalls)
          await log.write({ type: 'tool_call_completed', ...call, outcome: 'interrupted' })
        const newest = await bootNewest(
          deps,
          { input, config, mirror, location, base, workspace: folded, premise, log, phase },
          signal,
        )
        const { booted, workspace, passedOver } = newest
        const { server, sandbox } = booted
        const { wanted: recovered, putBack } = workspace
        let { commit } = newest
        const { blobRefs } = deps.catalog
        const blobs = createOwnedBlobs(deps.blobs, (ids, using) => blobRefs.use(owner, ids, using))
        const recovery = recovered.before || input.recovery ? recoveryEvent(input, newest) : undefined
        if (putBack) {
          phase('restore')
          const since = deps.clock.monotonic()
          const { now } = workspace
          const restore = { bcId, incarnation, ...putBack, mirror, base, log, now, wanted: recovered }
          commit = await restoreWorkspace({ ...deps, blobs }, { ...restore, ...booted }, signal).catch(
            async (thrown: unknown) => {
              await end(deps, booted)
              throw thrown
            },
          )
          recovery?.steps.push({ name: 'put_back', ms: Math.round(deps.clock.monotonic() - since) })
        }
        const parts = {
          input,
          config,
          mirror,
          keepBase,
          base,
          commit,
          log,
          blobs,
          booted,
          workspace,
          recovery,
          controller,
        }
        const session = createHostSession(deps, parts)
        server.onNews(() => takeNews(session))
        try {
          if (recovery) await log.write(recovery)
          await log.write({
            type: 'sandbox',
            incarnation,
            state: 'ready',
            commit,
            ...(isWhole(booted) && { manifestDigest: booted.manifestDigest }),
            ...(sandbox.expiresAt && { expiresAt: sandbox.expiresAt }),
          })
          // What no sandbox had yet comes on top of what was proven.
          await syncFiles(session, recovered.pending, signal)
          // The newest one can be had again, before contents that it needs are old enough to go.
          if (passedOver.length > 0 && !putBack) await session.workspace.checkpoint('', signal)
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
        leaveBeforeEnd(deps, session)
        watchAnswers(deps, session)
        followFileSyncs(deps, session, workspace.last)
      })
    return orFail(provision, setupReasons)
  }
}

const isWhole = ({ withoutSubmodules, withoutRepository }: Booted): boolean =>
  withoutSubmodules.length === 0 && !withoutRepository

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
