import type { AgentId } from '@tutti/core'
import { defined } from './sql-values.ts'
import type { LeaseCatalog, LeaseRow } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'

export function createLeaseCatalog({ executor }: { executor: SqlExecutor }): LeaseCatalog {
  const { db } = executor

  return {
    async acquire({ host, kind, holder, slots, now }, signal) {
      const queue = () => db.selectFrom('leases').where('host', '=', host).where('kind', '=', kind)
      const enter = db
        .insertInto('leases')
        .values((eb) => ({
          host,
          kind,
          holder,
          owner: eb.fn.coalesce(
            eb
              .selectFrom('agents')
              .select('owner')
              .where('bc_id', '=', holder as AgentId),
            eb.val(''),
          ),
          place: queue().select((row) =>
            row(row.fn.coalesce(row.fn.max('place'), row.lit(0)), '+', 1).as('place'),
          ),
          waiting_since: now,
          granted_at: null,
        }))
        .onConflict((conflict) => conflict.doNothing())
      // All in one statement, inside one transaction with the others: the number of free slots cannot change in between.
      const grant = db
        .updateTable('leases')
        .set({ granted_at: now })
        .where('host', '=', host)
        .where('kind', '=', kind)
        .where('granted_at', 'is', null)
        .where(
          (eb) =>
            eb(
              queue()
                .where('granted_at', 'is not', null)
                .select(({ fn }) => fn.countAll<number>().as('granted')),
              '+',
              eb
                .selectFrom('leases as ahead')
                .where('ahead.host', '=', host)
                .where('ahead.kind', '=', kind)
                .where('ahead.granted_at', 'is', null)
                .whereRef('ahead.place', '<=', 'leases.place')
                .select(({ fn }) => fn.countAll<number>().as('waiting')),
            ),
          '<=',
          slots,
        )
      const all = queue().select(['holder', 'granted_at']).orderBy('place')
      const [, , listed] = await executor.write([enter, grant, all], signal)
      const rows = (listed?.rows ?? []) as { holder: string; granted_at: number | null }[]
      if (rows.some((row) => row.holder === holder && row.granted_at !== null)) return { position: 0 }
      return {
        position: rows.filter((row) => row.granted_at === null).findIndex((row) => row.holder === holder) + 1,
      }
    },

    async release(host, holder, signal) {
      const gone = db.deleteFrom('leases').where('host', '=', host).where('holder', '=', holder)
      await executor.write([gone], signal)
    },

    async list(host, signal) {
      const query = db
        .selectFrom('leases')
        .selectAll()
        .where('host', '=', host)
        .orderBy('kind')
        .orderBy('place')
      return (await executor.read(query, signal)).map((row): LeaseRow => ({
        host: row.host,
        kind: row.kind,
        holder: row.holder,
        owner: row.owner,
        waitingSince: row.waiting_since,
        ...defined({ grantedAt: row.granted_at }),
      }))
    },
  }
}
