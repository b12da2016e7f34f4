import {
  TuttiError,
  noCrashPoints,
  orCancelled,
  systemClock,
  throwIfCancelled,
  type Clock,
  type CrashPoint,
} from '@tutti/core'
import type { Catalog } from '../catalog/port.ts'
import { createSqlCatalog } from '../catalog/sql-catalog.ts'
import { createQueryBuilder, toStatement, type SqlExecutor } from '../catalog/sql-executor.ts'
import { createLogWaiters } from '../event-log/log-waiters.ts'
import type { EventLog } from '../event-log/port.ts'
import { createSqliteEventLog } from '../event-log/sqlite-event-log.ts'
import { openWakeSockets } from '../event-log/wake-sockets.ts'
import { migrations } from '../migrations/index.ts'
import { sqliteDialect } from './sqlite-dialect.ts'
import { startSqliteThread, type SqliteThread } from './sqlite-thread.ts'

export interface SqliteStoreOptions {
  /** The database file, or `:memory:`; its folder must exist. */
  readonly path: string
  /** Where processes that share the file wake one another (`wake/` in it). Without it only polling finds others' appends. */
  readonly wakeDir?: string
  readonly crashPoint?: CrashPoint
  readonly clock?: Clock
}

export interface SqliteStore {
  readonly eventLog: EventLog
  readonly catalog: Catalog
  /** Waits for what was asked before; everything after fails with `unavailable`. Idempotent. */
  close(): Promise<void>
}

/** The backstop for lost wake-ups, in milliseconds: one look at a counter in shared memory (design §7). */
const pollMs = 50
/** Polling goes on for this long after the last waiter has left, so that readers in a loop do not switch it all the time. */
const lingerMs = 1000

/**
 * Event log and catalog in one SQLite file, which several processes may open (design §7). Everything that was acknowledged is on
 * the disk.
 *
 * @throws TuttiError `failed_precondition` when the file is of a newer format or not ours; `unavailable` when it cannot be opened.
 */
export async function createSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { path, wakeDir, crashPoint = noCrashPoints, clock = systemClock } = options
  const db = createQueryBuilder(sqliteDialect)
  const compiled = migrations.map((migration) => ({
    format: migration.format,
    statements: migration.statements(db).map(toStatement),
  }))
  const thread = await startSqliteThread({ path, migrations: compiled, pollMs }, () => void findChanges())
  let lingering: NodeJS.Timeout | undefined
  const waiters = createLogWaiters((occupied) => {
    clearTimeout(lingering)
    if (occupied) thread.watch(path !== ':memory:')
    else lingering = setTimeout(() => thread.watch(false), lingerMs).unref()
  })

  async function findChanges(): Promise<void> {
    const heads = await thread.call('heads', { logs: waiters.logs() }).catch(() => undefined)
    if (heads) waiters.compare(heads)
    // Whoever waits finds out by reading what is wrong with the store.
    else waiters.wakeAll()
  }

  const wake = await openWake(thread, wakeDir, (log) => waiters.wake(log))
  return {
    eventLog: createSqliteEventLog({
      thread,
      waiters,
      announce: (log) => wake.announce(log),
      crashPoint,
      clock,
    }),
    catalog: createSqlCatalog({ executor: createExecutor(thread, db, crashPoint), clock }),
    async close() {
      clearTimeout(lingering)
      await wake.close()
      await thread.stop()
      waiters.wakeAll()
    },
  }
}

async function openWake(
  thread: SqliteThread,
  wakeDir: string | undefined,
  onWake: Parameters<typeof openWakeSockets>[1],
) {
  if (wakeDir === undefined) return { announce: () => {}, close: async () => {} }
  try {
    return await openWakeSockets(wakeDir, onWake)
  } catch (error) {
    await thread.stop()
    throw new TuttiError(
      'unavailable',
      `The folder for wake-ups in ${wakeDir} cannot be used; make the data folder writable.`,
      {},
      error,
    )
  }
}

function createExecutor(thread: SqliteThread, db: SqlExecutor['db'], crashPoint: CrashPoint): SqlExecutor {
  return {
    db,
    async read(query, signal) {
      const { rows } = await orCancelled(thread.call('query', toStatement(query)), signal)
      return rows as never
    },
    async write(queries, signal) {
      throwIfCancelled(signal)
      const statements = queries.map(toStatement)
      return orCancelled(
        crashPoint('catalog.write', () => thread.call('batch', statements)),
        signal,
      )
    },
  }
}
