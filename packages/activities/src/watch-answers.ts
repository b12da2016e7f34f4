import type { ActivityDeps } from './deps.ts'
import { killSilent } from './kill-silent.ts'
import type { HostSession } from './sessions.ts'

/**
 * How often within the time it is looked for an answer. Looks are counted, not milliseconds: after a halt of this process there is one late
 * look, and what was answered meanwhile is read before the next.
 */
const looks = 5

/**
 * Asks the sandbox of a session whether it lives, until the session ends, and kills it when it has not answered for
 * `answerTimeoutMs`: one that is frozen breaks no link, and nothing else would end its turn.
 */
export function watchAnswers(
  deps: Pick<ActivityDeps, 'sandboxes' | 'log' | 'answerTimeoutMs'>,
  session: Pick<HostSession, 'server' | 'controller' | 'killed' | 'sandbox' | 'bcId'>,
): void {
  const { server, controller } = session
  let missed = 0
  let waiting = false
  const look = () => {
    if (waiting) missed += 1
    if (missed === looks) {
      stop()
      void killSilent(deps, session, 'a sign of life')
    }
    if (waiting) return
    waiting = true
    const answered = () => {
      waiting = false
      missed = 0
    }
    // An answer that says no is one too; a link that breaks ends the watch.
    void server.ping(controller.signal).then(answered, answered)
  }
  const timer = setInterval(look, deps.answerTimeoutMs / looks)
  const stop = () => clearInterval(timer)
  controller.signal.addEventListener('abort', stop, { once: true })
  void server.lost.then(stop)
}
