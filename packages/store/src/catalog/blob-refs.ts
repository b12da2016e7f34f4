import type { BlobRefCatalog } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'

/** Rows of one statement: far below SQLite's limit of parameters. */
const maxRows = 1000

export function createBlobRefCatalog({ executor }: { executor: SqlExecutor }): BlobRefCatalog {
  const { db } = executor

  return {
    async add(owner, blobs, signal) {
      const rows = [...new Set(blobs)].map((blob) => ({ owner, blob_id: blob }))
      const statements = Array.from({ length: Math.ceil(rows.length / maxRows) }, (_, index) =>
        db
          .insertInto('blob_refs')
          .values(rows.slice(index * maxRows, (index + 1) * maxRows))
          .onConflict((conflict) => conflict.doNothing()),
      )
      if (statements.length > 0) await executor.write(statements, signal)
    },

    async has(owner, blob, signal) {
      const query = db
        .selectFrom('blob_refs')
        .select('blob_id')
        .where('owner', '=', owner)
        .where('blob_id', '=', blob)
      return (await executor.read(query, signal)).length > 0
    },
  }
}
