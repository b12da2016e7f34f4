import type { RecoveryEvent } from '@tutti/protocol'
import { isAsLastRead } from '@tutti/workspace/log'
import type { HostSession } from './sessions.ts'

const shownPaths = 20

/** What an agent has to know before its next step, with the space behind it; empty when it knows it all. Says so once. */
export function takeNews(session: Pick<HostSession, 'untold' | 'recovery'>): string {
  const { recovery, untold } = session
  const news = [recovery ? replaced(recovery) : '', changed([...untold].sort())]
  session.recovery = undefined
  untold.clear()
  return news.map((text) => text && `${text}\n\n`).join('')
}

/** One that was given up between turns, in good order and with all that it had, is nothing new. */
function replaced({ reason, capturedAt, missing, moreMissing = 0 }: RecoveryEvent): string {
  if (reason === 'released' && missing.length === 0) return ''
  const since =
    capturedAt === undefined
      ? 'what it began with'
      : `what was captured at ${new Date(capturedAt).toISOString()}`
  const what =
    reason === 'lost'
      ? `Your sandbox was lost and made again from ${since}: what was written after that is gone.`
      : 'You have another sandbox.'
  const told = (words: string, paths: RecoveryEvent['missing'], more = 0) =>
    paths.length + more === 0
      ? ''
      : ` ${words}: ${shown(
          paths.map(({ path }) => path),
          more,
        )}.`
  const { unread = [], absent = [] } = Object.groupBy(missing, (left) =>
    isAsLastRead(left) ? 'unread' : 'absent',
  )
  const gone = told('Not there any more', absent, moreMissing)
  return `${what} Programs that ran in the one before have ended.${gone}${told('Could not be read, so as last read, if ever', unread)}`
}

function changed(paths: readonly string[]): string {
  if (paths.length === 0) return ''
  return `The user has changed files of the workspace: ${shown(paths)}. Theirs count: where you had changed one of them, your version was replaced. Look at them before you go on.`
}

function shown(paths: readonly string[], more = 0): string {
  const rest = Math.max(0, paths.length - shownPaths) + more
  const first = paths.slice(0, shownPaths).map((path) => JSON.stringify(path))
  return `${first.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}
