import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { SqlResult, SqlStatement } from '../catalog/sql-executor.ts'
import { createGroupCommit } from './group-commit.ts'
import { createLogStatements } from './log-statements.ts'
import type {
  Answer,
  FromThread,
  ReadRequests,
  Request,
  ThreadData,
  ToThread,
  WriteRequests,
} from './messages.ts'
import { openDatabase } from './open-database.ts'
import { retryBusy } from './retry-busy.ts'
import { toThreadError } from './sqlite-errors.ts'

type Handlers<R> = { [K in keyof R]: (ask: Ask<R[K]>) => AnswerOf<R[K]> }
type Ask<T> = T extends { ask: infer A } ? A : never
type AnswerOf<T> = T extends { answer: infer A } ? A : never

/** Kysely compiles the same texts again and again; more than this many different ones are not kept prepared. */
const maxPrepared = 500

/** The one thread that touches the database file: node:sqlite is synchronous and a commit waits for the disk. */
function main(): void {
  const port = parentPort
  if (!port) throw new Error('This file runs as a worker thread.')
  const send = (message: FromThread) => port.postMessage(message)
  const { path, migrations, pollMs } = workerData as ThreadData
  let db: DatabaseSync
  try {
    db = openDatabase(path, migrations)
  } catch (error) {
    send({ type: 'refused', error: toThreadError(error) })
    return
  }
  const answer = createAnswerer(db)
  const watch = createWatch(db, pollMs, () => send({ type: 'changed' }))
  port.on('message', (message: ToThread) => {
    // Everything that is queued by now goes into one transaction: this is the group commit.
    const requests: Request[] = []
    for (let next: { message: ToThread } | undefined = { message }; next; next = receiveMessageOnPort(port)) {
      if (next.message.type === 'requests') requests.push(...next.message.requests)
      if (next.message.type === 'watch') watch(next.message.on)
      if (next.message.type === 'stop') {
        if (requests.length > 0) send({ type: 'answers', answers: answer(requests) })
        watch(false)
        db.close()
        send({ type: 'stopped' })
        port.close()
        return
      }
    }
    if (requests.length > 0) send({ type: 'answers', answers: answer(requests) })
  })
  send({ type: 'ready' })
}

function createAnswerer(db: DatabaseSync): (requests: readonly Request[]) => readonly Answer[] {
  const log = createLogStatements(db)
  const run = createRunner(db)
  const commit = createGroupCommit(db)
  const reads: Handlers<ReadRequests> = {
    expected: ({ log: id, producerId, epoch }) => log.expected(id, producerId, epoch),
    head: ({ log: id }) => log.head(id),
    heads: ({ logs }) => log.heads(logs),
    read: (ask) => log.read(ask),
    unarchived: ({ log: id, maxBytes }) => log.unarchived(id, maxBytes),
    query: run,
  }
  const writes: Handlers<WriteRequests> = {
    create: ({ log: id, owner, at }) => log.create(id, owner, at),
    append: (ask) => log.append(ask),
    close: ({ log: id }) => log.close(id),
    archived: ({ log: id, upTo }) => log.archived(id, upTo),
    restore: ({ log: id, records }) => log.restore(id, records),
    batch: (statements) => statements.map(run),
  }
  const handlers = { ...reads, ...writes } as Record<string, (ask: unknown) => unknown>
  const readOne = ({ kind, ask }: Request) => {
    // One read transaction, so that what a request reads in several statements is of one instant.
    retryBusy(() => db.exec('BEGIN'))
    try {
      return retryBusy(() => handlers[kind]?.(ask))
    } finally {
      if (db.isTransaction) db.exec('ROLLBACK')
    }
  }

  return (requests) => {
    // Reads go first: they need not wait for the disk.
    const answers: Answer[] = requests
      .filter(({ kind }) => kind in reads)
      .map((request) => {
        try {
          return { id: request.id, value: readOne(request) }
        } catch (error) {
          return { id: request.id, error: toThreadError(error) }
        }
      })
    const changes = requests.filter(({ kind }) => kind in writes)
    if (changes.length === 0) return answers
    const outcomes = commit(
      changes.map(
        ({ kind, ask }) =>
          () =>
            handlers[kind]?.(ask),
      ),
    )
    return [
      ...answers,
      ...outcomes.map((outcome, index): Answer => {
        const id = changes[index]?.id ?? -1
        return 'error' in outcome ? { id, error: toThreadError(outcome.error) } : { id, value: outcome.value }
      }),
    ]
  }
}

function createRunner(db: DatabaseSync): (statement: SqlStatement) => SqlResult {
  const prepared = new Map<string, StatementSync>()
  return ({ sql, parameters }) => {
    let statement = prepared.get(sql)
    if (!statement) {
      statement = db.prepare(sql)
      if (prepared.size < maxPrepared) prepared.set(sql, statement)
    }
    if (statement.columns().length > 0) {
      const rows = statement.all(...parameters)
      return { rows, changes: rows.length }
    }
    return { rows: [], changes: Number(statement.run(...parameters).changes) }
  }
}

/** Tells when another connection has committed (PRAGMA data_version does not move for our own commits). */
function createWatch(db: DatabaseSync, pollMs: number, onChange: () => void): (on: boolean) => void {
  const select = db.prepare('PRAGMA data_version')
  const version = () => Number(select.get()?.['data_version'])
  let timer: NodeJS.Timeout | undefined
  return (on) => {
    if (!on) {
      clearInterval(timer)
      timer = undefined
      return
    }
    if (timer) return
    let seen = version()
    timer = setInterval(() => {
      const now = version()
      if (now !== seen) onChange()
      seen = now
    }, pollMs)
  }
}

main()
