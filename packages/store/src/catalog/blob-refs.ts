import { TuttiError, type BlobId, type Clock } from '@tutti/core'
import type { BlobRefCatalog } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'

/** Rows of one statement: far below SQLite's limit of parameters. */
const maxRows = 1000
/** Looking again whether a removal has ended; it takes a request to the store for each blob. In milliseconds. */
const [pollMs, patienceMs] = [100, 90_000]

export function createBlobRefCatalog({
  executor,
  clock,
}: {
  executor: SqlExecutor
  clock: Clock
}): BlobRefCatalog {
  const { db } = executor

  const pages = (blobs: readonly BlobId[]): BlobId[][] => {
    const all = [...new Set(blobs)]
    const count = Math.ceil(all.length / maxRows)
    return Array.from({ length: count }, (_, at) => all.slice(at * maxRows, (at + 1) * maxRows))
  }

  /** Writes the rows, and then waits until none of the blobs is being removed. */
  async function announce(
    owner: string,
    blobs: readonly BlobId[],
    usedAt: number | null,
    signal: AbortSignal,
  ) {
    const all = pages(blobs)
    if (all.length === 0) return
    const inserts = all.map((page) =>
      db
        .insertInto('blob_refs')
        .values(page.map((blob) => ({ owner, blob_id: blob, used_at: usedAt })))
        .onConflict((conflict) => {
          const update = conflict.columns(['owner', 'blob_id']).doUpdateSet({ used_at: usedAt })
          return usedAt === null ? update : update.where('blob_refs.used_at', 'is not', null)
        }),
    )
    const removals = all.map((page) =>
      db.selectFrom('blob_removals').select('blob_id').where('blob_id', 'in', page),
    )
    const outcomes = await executor.write([...inserts, ...removals], signal)
    let waits = outcomes.slice(inserts.length).some(({ rows }) => rows.length > 0)
    for (const end = clock.monotonic() + patienceMs; waits;) {
      if (clock.monotonic() > end)
        throw new TuttiError(
          'unavailable',
          'A blob is being removed at this moment; try again in some minutes.',
        )
      await clock.sleep(pollMs, signal)
      const found = await Promise.all(removals.map((query) => executor.read(query, signal)))
      waits = found.some((rows) => rows.length > 0)
    }
  }

  return {
    add: (owner, blobs, signal) => announce(owner, blobs, null, signal),
    use: (owner, blobs, signal) => announce(owner, blobs, clock.now(), signal),

    async has(owner, blob, signal) {
      const query = db
        .selectFrom('blob_refs')
        .select('blob_id')
        .where('owner', '=', owner)
        .where('blob_id', '=', blob)
      return (await executor.read(query, signal)).length > 0
    },

    async beginRemoval(blobs, usedBefore, signal) {
      const now = clock.now()
      const inserts = blobs.map((blob) => {
        const needed = db
          .selectFrom('blob_refs')
          .select('blob_id')
          .where('blob_id', '=', blob)
          .where((where) => where.or([where('used_at', 'is', null), where('used_at', '>=', usedBefore)]))
        return db
          .insertInto('blob_removals')
          .columns(['blob_id', 'owner', 'begun_at'])
          .expression(
            db
              .selectNoFrom((eb) => [
                eb.val<BlobId>(blob).as('blob_id'),
                eb.val('').as('owner'),
                eb.val(now).as('begun_at'),
              ])
              .where(({ not, exists }) => not(exists(needed))),
          )
          .onConflict((conflict) => conflict.doNothing())
      })
      if (inserts.length === 0) return []
      const outcomes = await executor.write(inserts, signal)
      return blobs.filter((_, at) => outcomes[at]?.changes === 1)
    },

    async removable(blobs, usedBefore, signal) {
      const queries = pages(blobs).map((page) =>
        db
          .selectFrom('blob_refs')
          .select('blob_id')
          .distinct()
          .where('blob_id', 'in', page)
          .where((where) => where.or([where('used_at', 'is', null), where('used_at', '>=', usedBefore)]))
          .union(db.selectFrom('blob_removals').select('blob_id').where('blob_id', 'in', page)),
      )
      const found = await Promise.all(queries.map((query) => executor.read(query, signal)))
      const needed = new Set(found.flat().map((row) => row.blob_id))
      return blobs.filter((blob) => !needed.has(blob))
    },

    async endRemoval(blobs, usedBefore, signal) {
      const statements = pages(blobs).flatMap((page) => [
        // Who has announced a use meanwhile waits for this, and stores the blob then.
        db.deleteFrom('blob_refs').where('blob_id', 'in', page).where('used_at', '<', usedBefore),
        db.deleteFrom('blob_removals').where('blob_id', 'in', page),
      ])
      if (statements.length > 0) await executor.write(statements, signal)
    },

    async takeOverRemovals(begunBefore, signal) {
      const [found] = await executor.write(
        [
          db.selectFrom('blob_removals').select('blob_id').where('begun_at', '<', begunBefore),
          db.updateTable('blob_removals').set({ begun_at: clock.now() }).where('begun_at', '<', begunBefore),
        ],
        signal,
      )
      return ((found?.rows ?? []) as { blob_id: BlobId }[]).map((row) => row.blob_id)
    },
  }
}
