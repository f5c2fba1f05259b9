/** The icons of Lucide that the portal uses. One more is one more line. */

import * as lucide from 'virtual:lucide';
import type { ReactElement } from 'react';

export type Icon = (props: { size?: number; 'aria-hidden'?: boolean }) => ReactElement;

/** What it shows is always said in words, too: screen readers pass it by. */
const icon =
  (shapes = ''): Icon =>
  ({ size = 24 }) => {
    // Nobody's input: the package's own text, put in when the portal is built.
    const inside = { dangerouslySetInnerHTML: { __html: shapes } };
    return <svg width={size} height={size} viewBox="0 0 24 24" aria-hidden {...inside} />;
  };

export const Activity = icon(lucide.Activity);
export const AlertTriangle = icon(lucide.TriangleAlert);
export const ArrowDown = icon(lucide.ArrowDown);
export const ArrowRightLeft = icon(lucide.ArrowRightLeft);
export const Bookmark = icon(lucide.Bookmark);
export const ChartColumn = icon(lucide.ChartColumn);
export const CheckCircle2 = icon(lucide.CircleCheck);
export const ChevronDown = icon(lucide.ChevronDown);
export const CircleOff = icon(lucide.CircleOff);
export const ClipboardList = icon(lucide.ClipboardList);
export const Columns3 = icon(lucide.Columns3);
export const Compass = icon(lucide.Compass);
export const Copy = icon(lucide.Copy);
export const Database = icon(lucide.Database);
export const Download = icon(lucide.Download);
export const Filter = icon(lucide.Filter);
export const FlaskConical = icon(lucide.FlaskConical);
export const KeyRound = icon(lucide.KeyRound);
export const Layers = icon(lucide.Layers);
export const LayoutDashboard = icon(lucide.LayoutDashboard);
export const ListChecks = icon(lucide.ListChecks);
export const LogIn = icon(lucide.LogIn);
export const LogOut = icon(lucide.LogOut);
export const MapPin = icon(lucide.MapPin);
export const Maximize2 = icon(lucide.Maximize2);
export const Menu = icon(lucide.Menu);
export const Minus = icon(lucide.Minus);
export const Monitor = icon(lucide.Monitor);
export const Moon = icon(lucide.Moon);
export const MoreHorizontal = icon(lucide.Ellipsis);
export const Network = icon(lucide.Network);
export const Pause = icon(lucide.Pause);
export const Pencil = icon(lucide.Pencil);
export const Play = icon(lucide.Play);
export const PlugZap = icon(lucide.PlugZap);
export const Plus = icon(lucide.Plus);
export const RotateCcw = icon(lucide.RotateCcw);
export const RotateCw = icon(lucide.RotateCw);
export const Scale = icon(lucide.Scale);
export const Search = icon(lucide.Search);
export const Send = icon(lucide.Send);
export const Server = icon(lucide.Server);
export const SlidersHorizontal = icon(lucide.SlidersHorizontal);
export const SquareX = icon(lucide.SquareX);
export const Sun = icon(lucide.Sun);
export const Terminal = icon(lucide.Terminal);
export const Trash2 = icon(lucide.Trash);
export const TrendingUp = icon(lucide.TrendingUp);
export const Undo2 = icon(lucide.Undo2);
export const Upload = icon(lucide.Upload);
export const UserPlus = icon(lucide.UserPlus);
export const Users = icon(lucide.Users);
export const Waypoints = icon(lucide.Waypoints);
export const WifiOff = icon(lucide.WifiOff);
export const X = icon(lucide.X);
export const XCircle = icon(lucide.CircleX);
