/** Reasons as the API tells them: of those that are kept with decisions, some may be of an earlier release. */
import { isReasonCode, type ReasonCode } from '../core/index.js';

export const reasonOf = (code: string): ReasonCode | 'EARLIER_RELEASE' =>
  isReasonCode(code) ? code : 'EARLIER_RELEASE';
