export { testEventLogContract } from './event-log/contract.ts'
export { testCatalogContract } from './catalog/contract.ts'
